package profile

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"sync"
)

// ErrWhat: a word for what to mark that there is not.
var ErrWhat = errors.New("want labels, regions, or both")

// Marks makes marks. Make one with Parse. Any goroutine may call Begin.
type Marks struct {
	labels, regions bool
	names           func(call) *names
}

// call is what is marked; target -1: no rank in particular.
type call struct {
	op     string
	target int
}

// names are how a call is called.
type names struct {
	labels context.Context // nothing but the labels
	region string
}

// Parse returns the marks that a word asks for: "labels", "regions", "both"; nil for "".
func Parse(what string) (*Marks, error) {
	switch what {
	case "":
		return nil, nil
	case "labels":
		return &Marks{labels: true, names: keeping()}, nil
	case "regions":
		return &Marks{regions: true, names: keeping()}, nil
	case "both":
		return &Marks{labels: true, regions: true, names: keeping()}, nil
	}
	return nil, fmt.Errorf("%w, found %q", ErrWhat, what)
}

// Mark is a call that has begun. The zero Mark is none.
type Mark struct {
	after  context.Context // whose labels End sets; nil: it sets none
	region *trace.Region
}

// Begin marks that the calling goroutine is in op for target, -1 for no rank in particular. It allocates the first time, and
// while a trace is recorded.
func (m *Marks) Begin(op string, target int) Mark {
	n := m.names(call{op, target})
	if m.labels {
		pprof.SetGoroutineLabels(n.labels)
	}
	return m.region(context.Background(), n)
}

// Within is Begin for a call that was given ctx, whose labels stand beside ours and are back after it. ctx may be nil, as that of a collective call
// may: it has no labels. It allocates.
func (m *Marks) Within(ctx context.Context, op string, target int) Mark {
	if ctx == nil {
		ctx = context.Background()
	}
	c := call{op, target}
	if m.labels {
		pprof.SetGoroutineLabels(pprof.WithLabels(ctx, set(c)))
	}
	return m.region(ctx, m.names(c))
}

// region completes a mark, at whose end the labels are those of after.
func (m *Marks) region(after context.Context, n *names) Mark {
	k := Mark{}
	if m.labels {
		k.after = after
	}
	if m.regions && trace.IsEnabled() {
		k.region = trace.StartRegion(after, n.region)
	}
	return k
}

// End says that the call returns (M2). It must run on the goroutine of Begin.
func (k Mark) End() {
	if k.region != nil {
		k.region.End()
	}
	if k.after != nil {
		pprof.SetGoroutineLabels(k.after)
	}
}

// keeping returns a function that makes the names of a call and keeps them. The map is its own, and not a field of Marks: whoever imports a type
// that has a sync.Map in it compiles the generic type that that is made of.
func keeping() func(call) *names {
	var known sync.Map // of names, by call
	return func(c call) *names {
		if n, ok := known.Load(c); ok {
			return n.(*names)
		}
		n := &names{labels: pprof.WithLabels(context.Background(), set(c)), region: "pgas " + c.op}
		if c.target >= 0 {
			n.region += " " + strconv.Itoa(c.target)
		}
		kept, _ := known.LoadOrStore(c, n)
		return kept.(*names)
	}
}

func set(c call) pprof.LabelSet {
	if c.target < 0 {
		return pprof.Labels("pgas_op", c.op)
	}
	return pprof.Labels("pgas_op", c.op, "pgas_target", strconv.Itoa(c.target))
}
