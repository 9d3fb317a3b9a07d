// Command traffic is a program of ranks whose traffic is known: rank r puts r+1 megabytes to the next rank through mapped memory
// and r+1 times 100 kB to the one after that through the NIC. Then all meet in a barrier, to which rank 0 comes when the
// file exists that the first argument names. If that is "fail", rank 1 exits with 7 instead; if it is
// "save", no rank does any of this: they wait to be told to end, and all but rank 0 then take their time. With "reach" rank 0 alone waits, and
// the others put to it, with calls that take no context, until one fails.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"gopgas/pgas"
	"gopgas/window"
)

const (
	near = 1_000_000 // bytes of a put to the next rank
	far  = 100_000   // and to the one after that
)

func main() {
	pgas.Main(func(ctx context.Context, w *pgas.World) error {
		me, n := w.Rank(), w.Size()
		if len(os.Args) > 1 && os.Args[1] == "save" {
			return save(ctx, me)
		}
		if len(os.Args) > 1 && os.Args[1] == "reach" {
			return reach(ctx, w)
		}
		mapped, err := window.Allocate[byte](ctx, w.Team(), near)
		if err != nil {
			return err
		}
		nic, err := window.Create(ctx, w.Team(), make([]byte, far))
		if err != nil {
			return err
		}
		for range me + 1 {
			if err := mapped.Put((me+1)%n, 0, make([]byte, near)); err != nil {
				return err
			}
			if err := nic.Put((me+2)%n, 0, make([]byte, far)); err != nil {
				return err
			}
		}
		if err := nic.Fence(ctx); err != nil {
			return err
		}
		if me == 1 && len(os.Args) > 1 && os.Args[1] == "fail" {
			os.Exit(7)
		}
		if me == 0 {
			for len(os.Args) > 1 {
				if _, err := os.Stat(os.Args[1]); err == nil {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if err := nic.Free(ctx); err != nil {
			return err
		}
		return mapped.Free(ctx)
	})
}

func save(ctx context.Context, me int) error {
	fmt.Println("up")
	<-ctx.Done()
	if me > 0 {
		time.Sleep(500 * time.Millisecond)
	}
	fmt.Println("saved", me)
	return ctx.Err()
}

func reach(ctx context.Context, w *pgas.World) error {
	win, err := window.Allocate[byte](ctx, w.Team(), near)
	if err != nil {
		return err
	}
	fmt.Println("up")
	if w.Rank() == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	for err == nil {
		err = win.Put(0, 0, make([]byte, near))
	}
	return err
}
