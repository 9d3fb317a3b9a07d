package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gopgas/pgas"
	pgsync "gopgas/sync"
)

// wrong: nobody sets the signal. The context ends the wait.
func wrong(ctx context.Context, w *pgas.World) error {
	signals, err := pgsync.NewSignals(ctx, w.Team(), 1)
	if err != nil {
		return err
	}
	if w.Rank() == 0 {
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		_, err := signals.Signal(0).WaitUntil(short, pgsync.Equal, 1)
		fmt.Println(err)
		fmt.Println(errors.Is(err, context.DeadlineExceeded))
	}
	return signals.Free(ctx)
}
