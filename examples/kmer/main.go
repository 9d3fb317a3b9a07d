// Command kmer counts how often each piece of k letters, a k-mer, occurs in a genome, on either strand.
//
// What it shows: a hash table as one array over all ranks. Every rank goes through its share of the letters and counts
// each k-mer at the place of its hash, whoever owns that: a compare-and-swap takes an empty place, a fetch-and-add
// counts. Both happen in the owner's memory, and the owner's program takes no step for them.
package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopgas/pgas"
)

func main() {
	pgas.Main(func(ctx context.Context, w *pgas.World) error { return run(ctx, w, os.Args[1:], os.Stdout) })
}

func run(ctx context.Context, w *pgas.World, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("kmer", flag.ContinueOnError)
	k := flags.Int("k", 31, "letters of a k-mer")
	flags.SetOutput(io.Discard) // the sentence below says it all
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 || *k < 1 || *k > 31 {
		return fmt.Errorf("arguments %q: needed one file in FASTA or FASTQ, and before it perhaps -k and a number from 1 to 31", args)
	}
	letters, err := read(flags.Arg(0))
	if err != nil {
		return err
	}
	total, done := 0, 0
	for range kmers(letters, *k) {
		total++
	}
	if total == 0 {
		return fmt.Errorf("-k %d, but %s has no piece of so many known letters (A, C, G, T): needed a smaller k", *k, flags.Arg(0))
	}
	// Two words for a place: the k-mer plus 1, and its count. There are twice as many places as k-mers at most.
	table, err := pgas.NewArray[uint64](ctx, w.Team(), 4*total, pgas.Block())
	if err != nil {
		return err
	}
	start := time.Now()
	lo, hi := len(letters)*w.Rank()/w.Size(), len(letters)*(w.Rank()+1)/w.Size() // I count the k-mers that begin here
	for kmer := range kmers(letters[lo:min(hi+*k-1, len(letters))], *k) {
		if err := cmp.Or(ctx.Err(), count(table, kmer)); err != nil {
			return err
		}
		if done++; done%1000000 == 0 && w.Rank() == 0 {
			fmt.Fprintf(os.Stderr, "kmer: %d of %d\n", done, total/w.Size())
		}
	}
	if err := table.Fence(ctx); err != nil { // from here on all counts are complete
		return err
	}
	took := time.Since(start)
	if w.Rank() == 0 {
		found, err := collect(table, letters, *k)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%d k-mers of %d letters, %d of them distinct, counted by %d ranks in %v\nverified by a serial count\n",
			total, *k, len(found), w.Size(), took.Round(time.Microsecond))
		slices.SortFunc(found, func(a, b entry) int { return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.kmer, b.kmer)) })
		spell := strings.NewReplacer("0", "A", "1", "C", "2", "G", "3", "T")
		for _, e := range found[:min(5, len(found))] {
			fmt.Fprintf(out, "%6d x %s\n", e.count, spell.Replace(strconv.FormatUint(1<<(2**k)|e.kmer, 4)[1:]))
		}
	}
	return table.Free(ctx) // all wait here for rank 0, which reads the parts of all
}

// count adds one to the count of a k-mer: at the place of its hash, or the next that no other k-mer has.
func count(table *pgas.Array[uint64], kmer uint64) error {
	hash := (kmer + 1) * 0x9e3779b97f4a7c15
	for hash ^= hash >> 32; ; hash++ {
		place := int(hash % uint64(table.Len()/2))
		if was, err := pgas.CompareSwap(table, 2*place, 0, kmer+1); err != nil {
			return err
		} else if was == 0 || was == kmer+1 {
			_, err = pgas.FetchAdd(table, 2*place+1, 1)
			return err
		}
	}
}

type entry struct{ kmer, count uint64 }

// collect fetches the table in one call, whoever owns it, and verifies it against a count in an ordinary map.
func collect(table *pgas.Array[uint64], letters []byte, k int) (found []entry, err error) {
	words, serial, right := make([]uint64, table.Len()), map[uint64]uint64{}, true
	if err := table.Get(0, words); err != nil {
		return nil, err
	}
	for kmer := range kmers(letters, k) {
		serial[kmer]++
	}
	for i := 0; i < len(words); i += 2 {
		if words[i] != 0 {
			found = append(found, entry{words[i] - 1, words[i+1]})
			right = right && serial[words[i]-1] == words[i+1]
		}
	}
	if !right || len(found) != len(serial) {
		return nil, fmt.Errorf("wrong: the counts of %d k-mers differ from a serial count of %d", len(found), len(serial))
	}
	return found, nil
}

// kmers yields the k-mers as numbers, 2 bits a letter: of each and its reading on the other strand the smaller one.
func kmers(letters []byte, k int) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		known, here, other := 0, uint64(0), uint64(0)
		for _, letter := range letters {
			code := strings.IndexByte("ACGT", letter) // 3 minus that is its partner's on the other strand
			if known++; code < 0 {
				known = 0 // unknown, or the beginning of a sequence: no k-mer goes across
			}
			here = (here<<2 | uint64(code&3)) & (1<<(2*k) - 1)
			other = other>>2 | uint64(3-code&3)<<(2*k-2)
			if known >= k && !yield(min(here, other)) {
				return
			}
		}
	}
}

// read returns the letters of all sequences in a file, each sequence after a '-'.
func read(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%w: needed a file in FASTA or FASTQ", err)
	}
	record := regexp.MustCompile(`(?m)^>.*$|^@.*\n(.*)\n\+.*\n.*$`) // a name in FASTA, the four lines of a read in FASTQ
	letters := bytes.ToUpper(bytes.Join(bytes.Fields(record.ReplaceAll(text, []byte("-$1"))), nil))
	if odd := bytes.Trim(letters, "-ACGTUNRYSWKMBDHV"); len(odd) > 0 || !bytes.HasPrefix(letters, []byte("-")) {
		return nil, fmt.Errorf("%s (%d bytes): %.20q is no sequence: needed FASTA (> and a name, then lines of ACGTN) or FASTQ", name, len(text), odd)
	}
	return letters, nil
}
