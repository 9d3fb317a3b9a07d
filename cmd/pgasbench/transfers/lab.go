package transfers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"gopgas/cmd/pgasbench/figures"
	"gopgas/internal/proto"
	"gopgas/internal/selector"
	"gopgas/pgas"
	"gopgas/window"
)

// headroom is what a world's own buffers need beside the transfers' memory.
const headroom = 256 << 20

// variant is a way for transfers to travel in a world of its own.
type variant struct {
	name  string
	eager string // PGAS_EAGER
	bulk  string // PGAS_BULK
	force selector.Protocol
	plain bool // the costs are not measured beforehand
}

// bench is the world of a variant: one rank that puts to itself over a NIC.
type bench struct {
	variant
	w   *pgas.World
	win *window.Window[byte]
}

// openBench makes the world, with a window of so many bytes, touched, and room to register as many of the rank's own again.
func openBench(ctx context.Context, o *figures.Options, v variant, bytes int, own int64, c pgas.Config) (b *bench, err error) {
	c.Transport, c.NoLocal, c.Environ = o.Transport, true, []string{}
	c.Eager, c.Bulk = v.eager, v.bulk
	c.MaxPinned = int64(bytes) + own + headroom
	b = &bench{variant: v}
	if b.w, err = pgas.Init(ctx, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", v.name, err)
	}
	if b.win, err = window.Allocate[byte](ctx, b.w.Team(), bytes); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", v.name, err), b.w.Close(ctx))
	}
	clear(b.win.Local())
	e := b.w.Team().Engine()
	if !v.plain {
		if _, err := e.Estimates(selector.Query{Bytes: 1 << 20, Waited: true, Uses: 1}); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", v.name, err), b.w.Close(ctx))
		}
	}
	e.Force(v.force)
	return b, nil
}

func (b *bench) close(ctx context.Context) error {
	return errors.Join(b.win.Free(ctx), b.w.Close(ctx))
}

// put is a put of src to the window's begin and its flush.
func (b *bench) put(src []byte) error {
	if err := b.win.Put(0, 0, src); err != nil {
		return err
	}
	return b.win.Flush(0)
}

// get is a get of the window's begin.
func (b *bench) get(dst []byte) error { return b.win.Get(0, 0, dst) }

// holds is T1.
func (b *bench) holds(want []byte) error { return b.holdsAt(0, want) }

func (b *bench) holdsAt(at int, want []byte) error {
	if !bytes.Equal(b.win.Local()[at:at+len(want)], want) {
		return fmt.Errorf("%s: wrong result at the target: it does not hold the %d bytes put last", b.name, len(want))
	}
	return nil
}

// paths are how many operations have travelled how.
func (b *bench) paths() map[proto.Path]proto.Count { return b.w.Team().Engine().Stats() }

// apart lets some time pass between the turns of worlds: a NIC's threads look for work for a while after its last transfer, and
// would share the cores with the next world's.
func apart() { time.Sleep(500 * time.Microsecond) }

// timed returns how long f takes in seconds.
func timed(f func() error) (float64, error) {
	began := time.Now()
	err := f()
	return time.Since(began).Seconds(), err
}

// openAll makes a bench for each variant.
func openAll(ctx context.Context, o *figures.Options, vs []variant, bytes int, own int64, c pgas.Config) (all []*bench, err error) {
	for _, v := range vs {
		b, err := openBench(ctx, o, v, bytes, own, c)
		if err != nil {
			return nil, errors.Join(err, closeAll(ctx, all))
		}
		all = append(all, b)
	}
	return all, nil
}

func closeAll(ctx context.Context, all []*bench) (err error) {
	for _, b := range all {
		err = errors.Join(err, b.close(ctx))
	}
	return err
}

// arena is memory for buffers that have not been used before, touched.
type arena struct {
	mem []byte
	at  int
}

func newArena(bytes int) *arena {
	a := &arena{mem: make([]byte, bytes)}
	for i := 0; i < bytes; i++ {
		if i >= 1<<20 { // the rest repeats it
			i += copy(a.mem[i:], a.mem[i-1<<20:i])
			i--
			continue
		}
		a.mem[i] = byte(i>>12) ^ byte(i)*7 | 1
	}
	return a
}

// take returns the next buffer of n bytes, on pages of its own.
func (a *arena) take(n int) []byte {
	whole := (n + 4095) &^ 4095
	b := a.mem[a.at : a.at+n : a.at+n]
	a.at += whole
	return b
}
