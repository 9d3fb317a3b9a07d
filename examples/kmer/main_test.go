package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

var program = pgastest.Program(run)

// written writes a file for the program to read and returns its name.
func written(t *testing.T, text string) string {
	name := filepath.Join(t.TempDir(), "letters")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// TestLambda counts the genome beside this file, or its first 2 800 letters over the NIC, where an operation takes many
// microseconds. The figures are those of an independent count.
func TestLambda(t *testing.T) {
	genome, err := os.ReadFile("lambda.fa")
	require.NoError(t, err)
	begin := written(t, strings.Join(strings.SplitAfter(string(genome), "\n")[:41], ""))
	for k, want := range map[string]struct{ all, begin string }{
		"31": {"48472 k-mers of 31 letters, 48472 of them distinct", "2770 k-mers of 31 letters, 2770 of them distinct"},
		"8":  {"48495 k-mers of 8 letters, 22093 of them distinct", "2793 k-mers of 8 letters, 2581 of them distinct"},
	} {
		args := func(nic bool) []string {
			if nic {
				return []string{"-k", k, begin}
			}
			return []string{"-k", k, "lambda.fa"}
		}
		program.InWorlds(t, args, func(t *testing.T, nic bool, outs []string) {
			ranks, out := len(outs), pgastest.OnlyRank0(t, outs)
			counted := want.all
			if nic {
				counted = want.begin
			}
			require.Contains(t, out, fmt.Sprintf("%s, counted by %d ranks", counted, ranks))
			require.Contains(t, out, "verified by a serial count")
			if k == "8" && !nic {
				require.Contains(t, out, "\n    18 x CAGCCAGC\n    16 x CTGGCTGA\n    15 x ATAAAAAA\n")
			}
		})
	}
}

func TestSmallFiles(t *testing.T) {
	for name, c := range map[string]struct{ k, text, want string }{
		"fewer k-mers than ranks":    {"3", ">a\nACGTA\n", "3 k-mers of 3 letters, 2 of them distinct"},
		"nothing across sequences":   {"3", ">a\nACG\n>b\nTTT\n", "2 k-mers of 3 letters, 2 of them distinct"},
		"nothing across unknown":     {"2", ">a\nACNGT\n", "2 k-mers of 2 letters, 1 of them distinct"},
		"lower case, broken lines":   {"4", "\n>a b c\r\nac\r\ngt\r\n", "1 k-mers of 4 letters, 1 of them distinct"},
		"FASTQ":                      {"4", "@r1\nACGTN\n+\n>@+IA\n@r2\nTTTTT\n+r2\n@@@@@", "3 k-mers of 4 letters, 2 of them distinct"},
		"both strands are the same":  {"5", ">a\nAAAAA\nN\nTTTTT\n", "2 k-mers of 5 letters, 1 of them distinct"},
		"the largest k, all letters": {"31", ">a\n" + strings.Repeat("T", 31) + "\n", "1 k-mers of 31 letters, 1 of them distinct"},
	} {
		t.Run(name, func(t *testing.T) {
			file := written(t, c.text)
			program.InWorlds(t, func(bool) []string { return []string{"-k", c.k, file} }, func(t *testing.T, _ bool, outs []string) {
				out := pgastest.OnlyRank0(t, outs)
				require.Contains(t, out, c.want)
			})
		})
	}
}

func TestWrongInput(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":           {"", `(0 bytes): "" is no sequence: needed FASTA`},
		"no name":         {"ACGT\n", "needed FASTA"},
		"protein":         {">p\nMKLV\nEFIL\n", `"LVEFIL" is no sequence`},
		"FASTQ cut short": {"@r1\nACGT\n", "is no sequence: needed FASTA"},
		"short":           {">a\nACGT\n", "-k 31, but "},
		"no letters":      {">a\n", "needed a smaller k"},
	} {
		t.Run(name, func(t *testing.T) { program.Refuses(t, 3, c.want, written(t, c.text)) })
	}
	program.Refuses(t, 3, "no such file or directory: needed a file in FASTA or FASTQ", "missing.fa")
	program.Refuses(t, 1, "is a directory: needed a file", ".")
	for _, args := range [][]string{{}, {"a", "b"}, {"-k", "32", "lambda.fa"}, {"-k", "0", "lambda.fa"}, {"-k", "many", "lambda.fa"}} {
		program.Refuses(t, 1, "needed one file in FASTA or FASTQ", args...)
	}
}

// TestVerification shows that a k-mer too much, or one too few, is found.
func TestVerification(t *testing.T) {
	pgastest.Run(t, 3, func(ctx context.Context, w *pgas.World) error {
		letters := []byte("-ACGTTGCA")
		table, err := pgas.NewArray[uint64](ctx, w.Team(), 40, pgas.Block())
		if err != nil {
			return err
		}
		verify := func() error {
			require.NoError(t, table.Fence(ctx))
			_, err := collect(table, letters, 3)
			require.NoError(t, table.Fence(ctx))
			return err
		}
		require.ErrorContains(t, verify(), "the counts of 0 k-mers differ from a serial count of 4")
		if w.Rank() == 1 {
			for kmer := range kmers(letters, 3) {
				require.NoError(t, count(table, kmer))
			}
		}
		require.NoError(t, verify())
		if w.Rank() == 2 {
			require.NoError(t, count(table, 6)) // ACG
		}
		require.ErrorContains(t, verify(), "wrong: the counts of 4 k-mers differ")
		return nil
	})
}
