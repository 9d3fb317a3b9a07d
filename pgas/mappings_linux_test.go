package pgas_test

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/window"
)

// mappings is how many mappings this process has.
func mappings(t *testing.T) int {
	t.Helper()
	all, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return bytes.Count(all, []byte("\n"))
}

// TestClosedWorldsLeaveNoMappings: Close gives back what is attached still, where the race check looks at memory that no other rank maps, too.
func TestClosedWorldsLeaveNoMappings(t *testing.T) {
	const worlds = 40
	one := func(ctx context.Context) error {
		w, err := pgas.Init(ctx, &pgas.Config{Environ: []string{"PATH=/bin"}, Transport: "tcp", NoLocal: true, Check: "races"})
		if err != nil {
			return err
		}
		d, err := window.NewDynamic[int64](ctx, w.Team())
		if err != nil {
			return err
		}
		if _, err := d.Alloc(1000); err != nil {
			return err
		}
		return w.Close(ctx)
	}
	for range 5 {
		require.NoError(t, one(t.Context()))
	}
	before := mappings(t)
	for range worlds {
		require.NoError(t, one(t.Context()))
	}
	require.Less(t, mappings(t), before+worlds)
}
