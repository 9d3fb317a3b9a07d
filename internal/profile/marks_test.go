package profile

import (
	"bytes"
	"context"
	"runtime/pprof"
	"runtime/trace"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// labels are those of this goroutine, as a profile of goroutines shows them.
func labels(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&b, 1))
	for block := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(block, t.Name()[:strings.IndexByte(t.Name()+"/", '/')]) {
			for line := range strings.SplitSeq(block, "\n") {
				if l, ok := strings.CutPrefix(line, "# labels: "); ok {
					return l
				}
			}
		}
	}
	return ""
}

// none is what programs give that have no context.
var none context.Context

func TestLabels(t *testing.T) {
	m, err := Parse("labels")
	require.NoError(t, err)
	require.Empty(t, labels(t))
	k := m.Begin("put", 3)
	require.Equal(t, `{"pgas_op":"put", "pgas_target":"3"}`, labels(t))
	k.End()
	require.Empty(t, labels(t))

	ctx := pprof.WithLabels(context.Background(), pprof.Labels("phase", "solve"))
	pprof.SetGoroutineLabels(ctx)
	defer pprof.SetGoroutineLabels(context.Background())
	k = m.Within(ctx, "barrier", -1)
	require.Equal(t, `{"pgas_op":"barrier", "phase":"solve"}`, labels(t))
	k.End()
	require.Equal(t, `{"phase":"solve"}`, labels(t), "M2")
	k = m.Within(none, "barrier", -1)
	require.Equal(t, `{"pgas_op":"barrier"}`, labels(t))
	k.End()
	require.Empty(t, labels(t))
	require.Zero(t, testing.AllocsPerRun(100, func() { m.Begin("put", 3).End() }))
}

func TestRegions(t *testing.T) {
	m, err := Parse("regions")
	require.NoError(t, err)
	ctx := pprof.WithLabels(context.Background(), pprof.Labels("phase", "solve"))
	pprof.SetGoroutineLabels(ctx)
	defer pprof.SetGoroutineLabels(context.Background())
	m.Begin("never", 1).End() // no trace is being recorded
	var b bytes.Buffer
	require.NoError(t, trace.Start(&b))
	m.Begin("put", 3).End()
	m.Within(context.Background(), "barrier", -1).End()
	m.Within(none, "fence", -1).End()
	trace.Stop()
	for _, want := range []string{"pgas put 3", "pgas barrier", "pgas fence"} {
		require.Contains(t, b.String(), want)
	}
	require.NotContains(t, b.String(), "pgas never")
	require.Equal(t, `{"phase":"solve"}`, labels(t), "regions leave labels alone")
}

func TestParse(t *testing.T) {
	m, err := Parse("")
	require.NoError(t, err)
	require.Nil(t, m)
	m, err = Parse("both")
	require.NoError(t, err)
	require.True(t, m.labels && m.regions)
	_, err = Parse("all")
	require.ErrorIs(t, err, ErrWhat)
	require.ErrorContains(t, err, `"all"`)
	Mark{}.End() // none
}
