// Command words counts words, each at the rank that has its count.
//
// What it shows: functions that ranks call on each other. A count belongs to a string, which no atomic operation knows: so each word is
// sent to its owner, who adds it to a map of its own while it makes up words itself. Nobody waits for an answer; Quiesce returns when
// all words have been counted. The most frequent ones are asked for by calls that go on side by side.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"gopgas/pgas"
	"gopgas/pgas/rpc"
)

func main() {
	pgas.Main(func(ctx context.Context, w *pgas.World) error {
		return run(ctx, w, os.Args[1:], os.Stdout)
	})
}

const shown = 5 // words

func run(ctx context.Context, w *pgas.World, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("words", flag.ContinueOnError)
	words := flags.Int("words", 100_000, "words of each rank")
	if w.Rank() != 0 {
		flags.SetOutput(io.Discard) // one usage text is enough
	}
	if err := flags.Parse(args); err == flag.ErrHelp {
		return nil
	} else if err != nil {
		return err
	}
	if *words < 0 || *words > 1<<32 || flags.NArg() > 0 {
		return fmt.Errorf("-words %d and arguments %q: needed 0 to %d words, and nothing else", *words, flags.Args(), 1<<32)
	}
	s, counts := rpc.New(w.Team()), map[string]int{} // the words of this rank, touched by functions in turn only
	add := rpc.HandleInTurn(s, "add", func(_ context.Context, _ int, word string) (struct{}, error) {
		counts[word]++
		return struct{}{}, nil
	})
	best := rpc.HandleInTurn(s, "best", func(_ context.Context, _ int, n int) ([]entry, error) { return first(counts, n), nil })
	if err := s.Start(ctx); err != nil {
		return err
	}
	start := time.Now()
	if err := each(ctx, w.Rank(), *words, func(word string) error { return add.Send(ctx, owner(word, w.Size()), word) }); err != nil {
		return err
	}
	if err := s.Quiesce(ctx); err != nil {
		return err
	}
	took := time.Since(start)
	if err := check(ctx, w, counts, *words); err != nil {
		return err
	}
	if n := *words * w.Size(); w.Rank() == 0 {
		list, err := ask(ctx, best, w.Size())
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%d words counted by %d ranks: %v, %.1f million words/s\nverified: all counts exact\n",
			n, w.Size(), took.Round(time.Microsecond), float64(n)/took.Seconds()/1e6)
		for _, e := range list {
			fmt.Fprintf(out, "%8d x %s\n", e.Count, e.Word)
		}
	}
	return s.Close(ctx)
}

// each calls f with all words of a rank, which are the same in every run.
func each(ctx context.Context, rank, words int, f func(word string) error) error {
	zipf := rand.NewZipf(rand.New(rand.NewPCG(uint64(rank), 1)), 1.2, 1, 1<<16)
	for i := range words {
		if i%(1<<12) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := f(fmt.Sprint("word", zipf.Uint64())); err != nil {
			return err
		}
	}
	return nil
}

func owner(word string, ranks int) int { return int(crc32.ChecksumIEEE([]byte(word))) % ranks }

// entry is a word with its count.
type entry struct {
	Word  string
	Count int
}

// ask asks all ranks for their most frequent words at once.
func ask(ctx context.Context, best *rpc.Func[int, []entry], ranks int) ([]entry, error) {
	asked, all := make([]*rpc.Pending[int, []entry], ranks), map[string]int{}
	var err error
	for rank := range asked {
		if asked[rank], err = best.CallNB(ctx, rank, shown); err != nil {
			return nil, err
		}
	}
	for _, p := range asked {
		list, err := p.Wait(ctx)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			all[e.Word] = e.Count
		}
	}
	return first(all, shown), nil
}

// first returns the n most frequent words, of equally frequent ones the first in the alphabet.
func first(counts map[string]int, n int) (list []entry) {
	for word, count := range counts {
		list = append(list, entry{word, count})
	}
	slices.SortFunc(list, func(a, b entry) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Word, b.Word)) })
	return list[:min(n, len(list))]
}

// check counts the words of all ranks again that are this one's.
func check(ctx context.Context, w *pgas.World, counts map[string]int, words int) error {
	want := map[string]int{}
	for rank := range w.Size() {
		if err := each(ctx, rank, words, func(word string) error {
			if owner(word, w.Size()) == w.Rank() {
				want[word]++
			}
			return nil
		}); err != nil {
			return err
		}
	}
	if !maps.Equal(counts, want) {
		return fmt.Errorf("wrong: %d words, most of %v, and should be %d, most of %v", len(counts), first(counts, shown), len(want), first(want, shown))
	}
	return nil
}
