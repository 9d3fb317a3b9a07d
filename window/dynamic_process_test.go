package window_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// TestAttachBetweenProcesses: new memory is mapped by the others, a slice that was there is reached by a NIC.
func TestAttachBetweenProcesses(t *testing.T) {
	pgastest.RunProcs(t, 3, func(ctx context.Context, w *pgas.World) error {
		d, err := window.NewDynamic[int64](ctx, w.Team())
		if err != nil {
			return err
		}
		refs, err := window.Allocate[window.Ref](ctx, w.Team(), 2)
		if err != nil {
			return err
		}
		slice := make([]int64, 1000)
		made, err := d.Alloc(2000)
		if err != nil {
			return err
		}
		had, err := d.Attach(slice)
		if err != nil {
			return err
		}
		next := (w.Rank() + 1) % w.Size()
		if err := errors.Join(refs.Put(next, 0, []window.Ref{made, had}), refs.Fence(ctx)); err != nil {
			return err
		}
		for k, ref := range refs.Local() {
			win, err := d.Reach(ref)
			if err != nil {
				return err
			}
			if _, ok := win.View(ref.Member); ok != (k == 0 && os.Getenv("PGAS_LOCAL") != "off") {
				return fmt.Errorf("memory %d: mapped is %v", k, ok)
			}
			if _, err := window.FetchAdd(win, ref.Member, ref.Len-1, int64(w.Rank()+1)); err != nil {
				return err
			}
			if err := errors.Join(win.Put(ref.Member, 7, []int64{77}), win.Fence(ctx), win.Free(ctx)); err != nil {
				return err
			}
		}
		by := int64(next + 1)
		// The fence went through the other processes, so the race detector has not seen that it came after the atomic,
		// which a thread of this process performed.
		last := atomic.LoadInt64(&slice[999])
		if mine := d.Local(made); mine[1999] != by || mine[7] != 77 || last != by || slice[7] != 77 {
			return fmt.Errorf("found %d and %d, %d and %d; wanted %d and 77 twice", mine[1999], mine[7], last, slice[7], by)
		}
		return errors.Join(d.Detach(had), refs.Free(ctx), d.Free(ctx))
	})
}
