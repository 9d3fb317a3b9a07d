package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"gopgas/window"
)

// The comparison of bucket sizes: one put of a whole window, and an exchange of keys as in the benchmark ISx, whose pieces lie far
// apart. Large buckets suit the first, small ones the second; last comes what the library chooses by itself.
const (
	leastBucket = 32 << 10
	mostBucket  = 128 << 20
	bucketStep  = 4 // each size is so many times the one before

	exchangePlaces = 512      // pieces that a rank sends to each other one in a round
	exchangePiece  = 16 << 10 // bytes of keys in each

	exchangeRounds = 8  // exchanges in a repeat,
	exchangeQuick  = 10 // if one takes less than so many times what a repeat does elsewhere; else one
)

// bucketRows are the rows for all sizes of buckets, on a window of span bytes.
func bucketRows(span int) ([]row, error) {
	if span < 2*exchangePlaces*exchangePiece {
		return nil, fmt.Errorf("--span %d: want at least %d, in which the pieces of the exchange lie apart", span, 2*exchangePlaces*exchangePiece)
	}
	var rows []row
	add := func(size int) {
		name, title := "auto", "buckets as chosen"
		if size > 0 {
			name, title = sizeName(size), "buckets of "+sizeName(size)
		}
		rows = append(rows, row{
			name: "put_buckets_" + name, title: "put " + sizeName(span) + ", " + title, api: "Window.Put, Flush each", unit: unitBytes, bytes: size, two: true,
			measure: func(ctx context.Context, b *bench, r *row) (int, []float64, error) {
				return measurePutAll(ctx, b, r, size, span)
			},
		}, row{
			name: "isx_buckets_" + name, title: "exchange of keys, " + title, api: "exchange as in isx, Fence each", unit: unitBytes, bytes: size, two: true,
			measure: func(ctx context.Context, b *bench, r *row) (int, []float64, error) {
				return measureExchange(ctx, b, size, span)
			},
		})
	}
	for size := leastBucket; size <= mostBucket; size *= bucketStep {
		add(size)
	}
	add(0)
	return rows, nil
}

// bucketWindow allocates a window that is reached through buckets of so many bytes; 0: as the library chooses.
func bucketWindow(ctx context.Context, b *bench, size, span int) (*window.Window[byte], error) {
	if err := b.w.Team().Engine().FixBuckets(int64(size)); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotHere, err) // the ranks' budgets are equal, and so is this
	}
	win, err := window.Allocate[byte](ctx, b.w.Team(), span)
	if err != nil {
		return nil, err
	}
	clear(win.Local()) // touches every page
	return win, win.Fence(ctx)
}

// measurePutAll puts a whole window, from memory of which no more than a part is ever registered.
func measurePutAll(ctx context.Context, b *bench, r *row, size, span int) (int, []float64, error) {
	win, err := bucketWindow(ctx, b, size, span)
	if err != nil {
		return 0, nil, err
	}
	var priv []byte
	if b.w.Rank() == 0 {
		priv = make([]byte, span)
		fillPattern(priv, 1)
	}
	n, values, err := b.alone(ctx, r, 1, span, func(n int) error {
		for range n {
			if err := win.Put(b.peer, 0, priv); err != nil {
				return err
			}
			if err := win.Flush(b.peer); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	var wrong error
	if b.w.Rank() == b.peer {
		wrong = checkPattern(win.Local(), 1)
	}
	if err := b.agree(ctx, wrong); err != nil {
		return 0, nil, err
	}
	return n, values, win.Free(ctx)
}

// measureExchange has every rank send its pieces to every other one, in an order of its own, and to places that lie as far
// apart as the window allows.
func measureExchange(ctx context.Context, b *bench, size, span int) (int, []float64, error) {
	win, err := bucketWindow(ctx, b, size, span)
	if err != nil {
		return 0, nil, err
	}
	me, ranks := b.w.Rank(), b.w.Size()
	stride := span / exchangePlaces
	if ranks*exchangePiece > stride {
		return 0, nil, fmt.Errorf("%d ranks, places of %d bytes: needed %d; give a larger --span or fewer ranks", ranks, stride, ranks*exchangePiece)
	}
	keys := make([]byte, exchangePlaces*exchangePiece)
	fillPattern(keys, byte(me))
	rng := rand.New(rand.NewPCG(1, uint64(me)))
	exchange := func() error {
		order := rng.Perm(exchangePlaces)
		for k := 1; k < ranks; k++ {
			to := (me + k) % ranks
			for _, i := range order {
				if err := win.Put(to, i*stride+me*exchangePiece, keys[i*exchangePiece:][:exchangePiece]); err != nil {
					return err
				}
			}
		}
		return win.Fence(ctx)
	}
	rounds, err := b.rounds(ctx, exchange)
	if err != nil {
		return 0, nil, err
	}
	n, values, err := b.together(ctx, unitBytes, rounds*ranks*(ranks-1)*exchangePlaces*exchangePiece/8, func() error {
		for range rounds {
			if err := exchange(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	if err := b.agree(ctx, checkExchange(b, win.Local(), stride)); err != nil {
		return 0, nil, err
	}
	return n, values, win.Free(ctx)
}

// rounds does one exchange, and returns how many a repeat has: a single quick one would be over before the library has learned how its
// puts travel best, and says more of that than of buckets.
func (b *bench) rounds(ctx context.Context, exchange func() error) (int, error) {
	began := time.Now()
	if err := exchange(); err != nil {
		return 0, err
	}
	n := uint64(1)
	if time.Since(began) < exchangeQuick*b.set.target {
		n = exchangeRounds
	}
	told, err := b.tell(ctx, n) // rank 0's
	if err != nil {
		return 0, err
	}
	return int(told[0]), nil
}

// checkExchange checks what this rank was sent.
func checkExchange(b *bench, local []byte, stride int) error {
	for from := range b.w.Size() {
		for i := range exchangePlaces {
			got := local[i*stride+from*exchangePiece:][:exchangePiece]
			for j, v := range got {
				if want := pattern(i*exchangePiece+j, byte(from)); from != b.w.Rank() && v != want {
					return fmt.Errorf("wrong result: byte %d of piece %d from rank %d is %d, want %d", j, i, from, v, want)
				}
			}
		}
	}
	return nil
}
