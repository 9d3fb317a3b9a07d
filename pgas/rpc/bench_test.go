package rpc_test

import (
	"context"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/pgas/rpc"
)

// calls are those of rank 0 to rank 1, which waits for nothing.
func calls(ctx context.Context, w *pgas.World) ([]pgastest.Call, error) {
	s := rpc.New(w.Team())
	turn := rpc.HandleInTurn(s, "turn", func(_ context.Context, _ int, x int) (int, error) { return x, nil })
	beside := rpc.Handle(s, "beside", func(_ context.Context, _ int, x int) (int, error) { return x, nil })
	bytes := rpc.HandleInTurn(s, "bytes", func(_ context.Context, _ int, b []byte) (int, error) { return len(b), nil })
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	long := make([]byte, 64<<10)
	call := func(f *rpc.Func[int, int]) func() error {
		return func() error {
			_, err := f.Call(ctx, 1, 1)
			return err
		}
	}
	return []pgastest.Call{
		{Name: "call in turn", Call: call(turn)},
		{Name: "call", Call: call(beside)},
		{Name: "send", Call: func() error { return turn.Send(ctx, 1, 1) }},
		{Name: "call with 64 KiB", Call: func() error {
			_, err := bytes.Call(ctx, 1, long)
			return err
		}},
	}, nil
}

func BenchmarkCalls(b *testing.B) { pgastest.Calls(calls).Benchmark(b) }

// TestCallsAllocateNothing: a call in turn of plain memory costs no garbage, at either end.
func TestCallsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's pools lose what they are given")
	}
	pgastest.Calls(func(ctx context.Context, w *pgas.World) ([]pgastest.Call, error) {
		all, err := calls(ctx, w)
		if err != nil {
			return nil, err
		}
		return all[:1], nil
	}).AllocateNothing(t)
}
