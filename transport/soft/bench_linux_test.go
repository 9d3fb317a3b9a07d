package soft_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/transport"
	"gopgas/transport/soft"
)

// spin polls for one completion; b.Loop's own work is outside of it.
func (r *rank) spin(b testing.TB, cq []transport.Completion) {
	for {
		n, err := r.d.Poll(cq)
		if err != nil || n > 0 && cq[0].Status != transport.StatusOK {
			b.Fatal(err, cq[:n])
		}
		if n > 0 {
			return
		}
	}
}

// BenchmarkPutFlush is a write to another process and its completion, one at a time, with the engine spinning.
func BenchmarkPutFlush(b *testing.B) {
	for _, bytes := range []int{8, 192, 4096, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(bytes), func(b *testing.B) {
			r, _ := job(b, soft.Config{Spin: time.Millisecond}, 2)
			ops := []transport.Op{r.op(transport.OpWrite, 1, 0, 0, bytes)}
			if bytes <= r.d.Caps().MaxInline {
				ops[0].Flags |= transport.FlagInline
			}
			cq := make([]transport.Completion, 1)
			b.SetBytes(int64(bytes))
			b.ReportAllocs()
			for b.Loop() {
				if n, err := r.d.Post(ops); n != 1 || err != nil {
					b.Fatal(n, err)
				}
				r.spin(b, cq)
			}
		})
	}
}

// BenchmarkShifted is a write of 1 MiB to a place that lies so many bytes further behind the beginning of a page than the source; 1 to 31 are slow for some kernels' copies.
func BenchmarkShifted(b *testing.B) {
	for _, shift := range []int{0, 8, 64} {
		b.Run(fmt.Sprint(shift), func(b *testing.B) {
			r, _ := job(b, soft.Config{Spin: time.Millisecond}, 2)
			ops := []transport.Op{r.op(transport.OpWrite, 1, 0, shift, 1<<20)}
			cq := make([]transport.Completion, 1)
			b.SetBytes(1 << 20)
			for b.Loop() {
				if n, err := r.d.Post(ops); n != 1 || err != nil {
					b.Fatal(n, err)
				}
				r.spin(b, cq)
			}
		})
	}
}

// BenchmarkKernel is what process_vm_writev alone does with the same memory.
func BenchmarkKernel(b *testing.B) {
	for _, bytes := range []int{8, 4096, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(bytes), func(b *testing.B) {
			r, ps := job(b, soft.Config{}, 2)
			require.NoError(b, r.must(r.op(transport.OpWrite, 1, 0, 0, bytes)))
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			here := []unix.Iovec{{Base: &r.mem.Data()[0], Len: uint64(bytes)}}
			there := []unix.RemoteIovec{{Base: uintptr(r.peers[1].base), Len: bytes}}
			b.SetBytes(int64(bytes))
			for b.Loop() {
				if n, err := unix.ProcessVMWritev(ps[1].cmd.Process.Pid, here, there, 0); n != bytes || err != nil {
					b.Fatal(n, err)
				}
			}
		})
	}
}

// BenchmarkFetchAdd is an atomic on another process's word, both engines spinning.
func BenchmarkFetchAdd(b *testing.B) {
	r, _ := job(b, soft.Config{Spin: time.Millisecond}, 2)
	ops := []transport.Op{r.op(transport.OpFetchAdd, 1, 0, 0, 8)}
	cq := make([]transport.Completion, 1)
	b.ReportAllocs()
	for b.Loop() {
		if n, err := r.d.Post(ops); n != 1 || err != nil {
			b.Fatal(n, err)
		}
		r.spin(b, cq)
	}
}

// BenchmarkRate is 64 writes of 8 bytes posted together and flushed by the last one.
func BenchmarkRate(b *testing.B) {
	r, _ := job(b, soft.Config{Spin: time.Millisecond}, 2)
	ops := make([]transport.Op, 64)
	for i := range ops {
		ops[i] = r.op(transport.OpWrite, 1, 8*i, 8*i, 8)
		ops[i].Flags = transport.FlagInline
	}
	ops[63].Flags |= transport.FlagSignaled
	cq := make([]transport.Completion, 1)
	b.ReportAllocs()
	for b.Loop() {
		if n, err := r.d.Post(ops); n != 64 || err != nil {
			b.Fatal(n, err)
		}
		r.spin(b, cq)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/write")
}

// work is a piece of computation that stays in registers.
//
//go:noinline
func work(n int) uint64 {
	x := uint64(n)
	for range n {
		x = x*6364136223846793005 + 1442695040888963407
		x ^= x >> 29
	}
	return x
}

// BenchmarkOverlap computes while 64 MiB travel, and reports how much longer that takes than without.
func BenchmarkOverlap(b *testing.B) {
	r, _ := job(b, soft.Config{}, 2)
	const total, piece = 64 << 20, 8 << 20
	var sink atomic.Uint64
	compute := func() time.Duration {
		start := time.Now()
		sink.Add(work(30_000_000))
		return time.Since(start)
	}
	compute()
	var alone, beside, travel time.Duration
	cq := make([]transport.Completion, 8)
	for b.Loop() {
		alone += compute()
		start := time.Now()
		for i := range total / piece {
			op := r.op(transport.OpWrite, 1, 0, 0, piece)
			if i != total/piece-1 {
				op.Flags = 0
			}
			require.NoError(b, r.post(op))
		}
		beside += compute()
		r.spin(b, cq)
		travel += time.Since(start)
	}
	b.ReportMetric(100*(float64(beside)/float64(alone)-1), "%slower")
	b.ReportMetric(float64(travel.Microseconds())/float64(b.N)/1000, "ms/64MiB+compute")
	b.ReportMetric(float64(alone.Microseconds())/float64(b.N)/1000, "ms/compute")
}

// TestHotPathAllocatesNothing posts, performs and polls without the heap.
func TestHotPathAllocatesNothing(t *testing.T) {
	r, _ := job(t, soft.Config{}, 2)
	cq := make([]transport.Completion, 8)
	for _, kind := range []transport.Kind{transport.OpWrite, transport.OpRead, transport.OpFetchAdd} {
		ops := []transport.Op{r.op(kind, 1, 0, 0, 8), r.op(kind, 0, 8, 0, 8)}
		ops[0].Flags = 0
		n := testing.AllocsPerRun(300, func() {
			posted := 0
			for done := false; !done; { // as spin, but AllocsPerRun leaves Go one processor
				if posted < 2 { // the first one's answer comes from another process, and there is room for so many
					k, err := r.d.Post(ops[posted:])
					if posted += k; err != nil {
						t.Error(err)
					}
				}
				k, err := r.d.Poll(cq)
				if done = k > 0; err != nil || done && cq[0].Status != transport.StatusOK {
					t.Error(err, cq[:k])
				}
				runtime.Gosched()
			}
		})
		require.Zero(t, n, "kind %d", kind)
	}
}
