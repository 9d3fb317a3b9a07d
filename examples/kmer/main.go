// Command kmer counts the k-mers of a genome: how often each piece of k letters occurs in it, on either strand. It reads
// FASTA, or FASTQ as sequencers write it, plain or compressed by gzip.
//
// What it shows: a hash table that is spread over all ranks. Every rank goes through its share of the letters and counts
// each k-mer where its hash says, on whatever rank that is. A compare-and-swap takes an empty place for a k-mer, and a
// fetch-and-add counts it: both happen at the owner, and none of its program runs for them. No k-mer is sent to anybody.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)
