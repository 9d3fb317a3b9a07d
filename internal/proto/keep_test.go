package proto

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/eager"
	"gopgas/internal/ledger"
	"gopgas/transport/transporttest"
)

// TestRecallSmall: costs of an earlier job by which nobody can decide of small transfers are told to be of no use, and measured; the next job has those.
func TestRecallSmall(t *testing.T) {
	kept := Kept{Now: time.Now}
	var err error
	kept.Ledger, err = ledger.Open(t.TempDir())
	require.NoError(t, err)
	job := func() *Engine {
		tm := newTeamWith(t, 1, 64<<10, transporttest.FabricConfig{}, nil, func(c *Config) { c.Kept = kept })
		tm.share()
		return tm.e[0]
	}
	known := func(e *Engine) (at time.Time, err error) {
		t.Helper()
		at, err = e.Kept()
		require.NoError(t, e.nic().measureNow())
		require.NoError(t, e.nic().prices().Why)
		return at, err
	}
	e := job()
	at, err := known(e)
	require.NoError(t, err)
	require.Zero(t, at)

	sheet, err := e.nic().prices().Sheet()
	require.NoError(t, err)
	var all map[string]any
	require.NoError(t, json.Unmarshal(sheet, &all))
	all["Small"] = [3]eager.Costs{{{Bytes: 64, Copy: -1}}}
	sheet, err = json.Marshal(all)
	require.NoError(t, err)
	require.NoError(t, kept.Ledger.Write(e.config.NICName, e.nic().kind(), sheet, time.Now()))

	at, err = known(job())
	require.ErrorContains(t, err, "has a cost of -1")
	require.Zero(t, at)
	at, err = known(job())
	require.NoError(t, err)
	require.NotZero(t, at)
}
