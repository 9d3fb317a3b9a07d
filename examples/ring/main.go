// Command ring sends a token round a ring of ranks, lap after lap, and measures a hop.
//
// What it shows: a put moves data, and tells nobody. Who waits for the data needs word that it has come, and a
// signal is that word: PutSignal writes the data and then the signal, in this order, so whoever sees the signal
// finds the data. There is no call that receives: the token is just there.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

func main() {
	pgas.Main(func(ctx context.Context, w *pgas.World) error {
		return run(ctx, w, os.Args[1:], os.Stdout)
	})
}

// run is the whole program as one rank lives it.
func run(ctx context.Context, w *pgas.World, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("ring", flag.ContinueOnError)
	laps := flags.Int("laps", 1000, "how often the token goes round")
	if w.Rank() != 0 {
		flags.SetOutput(io.Discard) // one usage text is enough
	}
	if err := flags.Parse(args); err == flag.ErrHelp {
		return nil
	} else if err != nil {
		return err
	}
	if flags.NArg() > 0 || *laps < 1 || *laps > 1<<30 {
		return fmt.Errorf("-laps %d and arguments %q: needed from 1 to %d laps, and nothing else", *laps, flags.Args(), 1<<30)
	}

	// A slot for the token on every rank, and a signal that says in which lap it has come.
	slot, err := window.Allocate[int64](ctx, w.Team(), 1)
	if err != nil {
		return err
	}
	signals, err := pgsync.NewSignals(ctx, w.Team(), 1)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := goRound(ctx, w, slot, signals.Signal(0), *laps); err != nil {
		return err
	}
	if took, hops := time.Since(start), *laps*w.Size(); w.Rank() == 0 {
		fmt.Fprintf(out, "the token went round %d times: %d hops, %v in all, %v a hop\n",
			*laps, hops, took.Round(time.Microsecond), took/time.Duration(hops))
	}
	if err := signals.Free(ctx); err != nil {
		return err
	}
	return slot.Free(ctx)
}

// goRound passes the token on in every lap. Each rank adds its number plus one to it.
func goRound(ctx context.Context, w *pgas.World, slot *window.Window[int64], arrived pgsync.Signal, laps int) error {
	me, next := w.Rank(), (w.Rank()+1)%w.Size()
	token := make([]int64, 1)
	told := time.Now()
	for lap := 1; lap <= laps; lap++ {
		if ctx.Err() != nil { // a rank alone never waits
			return ctx.Err()
		}
		if me == 0 { // rank 0 begins every lap, the others wait for the token
			token[0]++
			if err := slot.PutSignal(next, 0, token, arrived, uint64(lap)); err != nil {
				return err
			}
		}
		// The signal only grows, so it need not be reset. My slot is free again when I have read it: the rank
		// before me can write the next token only after this one has gone all the way round.
		if _, err := arrived.WaitUntil(ctx, pgsync.GreaterOrEqual, uint64(lap)); err != nil {
			return err
		}
		token[0] = slot.Local()[0]
		if err := check(token[0], w, lap); err != nil {
			return err
		}
		if me != 0 {
			token[0] += int64(me) + 1
			if err := slot.PutSignal(next, 0, token, arrived, uint64(lap)); err != nil {
				return err
			}
		}
		if me == 0 && time.Since(told) > 2*time.Second {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "ring: lap %d of %d\n", lap, laps)
		}
	}
	return nil
}

// check verifies the token that this rank found in a lap: what all ranks have added in the laps before, and what those
// before this one have added in this lap. At rank 0 the lap is over.
func check(token int64, w *pgas.World, lap int) error {
	n, before := int64(w.Size()), int64(w.Rank())
	if before == 0 {
		before = n
	}
	if want := int64(lap-1)*n*(n+1)/2 + before*(before+1)/2; token != want {
		return fmt.Errorf("lap %d: the token is %d, wanted %d", lap, token, want)
	}
	return nil
}
