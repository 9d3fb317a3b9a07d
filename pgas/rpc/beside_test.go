package rpc_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	netrpc "net/rpc"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/pgas/rpc"
	"gopgas/window"
)

var turns = flag.Int("beside", 2, "turns of TestBeside, in each of which calls of both take turns")

// Echo is what the standard library's package serves.
type Echo struct{}

// Number answers with what it is asked.
func (Echo) Number(x int, y *int) error {
	*y = x
	return nil
}

// TestBeside times calls between two processes by turns: this package's, where the other rank waits for calls too and where it computes, and those of net/rpc over a connection of the same
// two. It prints the medians; -args -beside 30 for more turns.
func TestBeside(t *testing.T) {
	paths := pgastest.ProcPaths()
	if testing.Short() {
		paths = paths[:1] // over the others two processes keep two cores busy
	}
	for _, p := range paths {
		t.Run(p.Name, func(t *testing.T) {
			pgastest.RunProcsConfig(t, 2, p.Procs, func(ctx context.Context, w *pgas.World) error {
				s := rpc.New(w.Team())
				turn := rpc.HandleInTurn(s, "turn", func(_ context.Context, _ int, x int) (int, error) { return x, nil })
				beside := rpc.Handle(s, "beside", func(_ context.Context, _ int, x int) (int, error) { return x, nil })
				over := make(chan struct{})
				end := rpc.Handle(s, "end", func(context.Context, int, int) (int, error) { close(over); return 0, nil })
				if err := s.Start(ctx); err != nil {
					return err
				}
				address, err := listen(ctx, w)
				if err != nil {
					return err
				}
				if w.Rank() == 1 {
					<-over
					return s.Close(ctx)
				}
				client, err := netrpc.Dial("tcp", address)
				if err != nil {
					return err
				}
				calls := []struct {
					name string
					call func(x int) (int, error)
				}{
					{"call in turn", func(x int) (int, error) { return turn.Call(ctx, 1, x) }},
					{"call", func(x int) (int, error) { return beside.Call(ctx, 1, x) }},
					{"net/rpc", func(x int) (y int, err error) { err = client.Call("Echo.Number", x, &y); return y, err }},
				}
				took := make([][]float64, len(calls))
				for range *turns {
					for i, c := range calls {
						const n = 500
						began := time.Now()
						for x := range n {
							y, err := c.call(x)
							require.NoError(t, err)
							require.Equal(t, x, y)
						}
						took[i] = append(took[i], time.Since(began).Seconds()/n*1e6)
					}
				}
				for i, c := range calls {
					slices.Sort(took[i])
					fmt.Printf("%-12s %6.2f us (%.2f-%.2f)\n", c.name, took[i][len(took[i])/2], took[i][0], took[i][len(took[i])-1])
				}
				if _, err := end.Call(ctx, 1, 0); err != nil {
					return err
				}
				return s.Close(ctx)
			})
		})
	}
}

// listen has rank 1 serve the standard library's calls, and returns where.
func listen(ctx context.Context, w *pgas.World) (address string, err error) {
	win, err := window.Allocate[byte](ctx, w.Team(), 100)
	if err != nil {
		return "", err
	}
	if w.Rank() == 1 {
		server := netrpc.NewServer()
		if err := server.Register(Echo{}); err != nil {
			return "", err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		go server.Accept(l)
		if err := win.Put(0, 0, []byte(l.Addr().String())); err != nil {
			return "", err
		}
	}
	if err := win.Fence(ctx); err != nil {
		return "", err
	}
	address = string(win.Local()[:slices.Index(win.Local(), 0)])
	return address, win.Free(ctx)
}
