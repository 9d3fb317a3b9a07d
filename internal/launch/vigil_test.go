package launch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/control"
)

func TestVigilLooksAtIdleJobs(t *testing.T) {
	const s = time.Second
	v := vigil{every: 10 * s}
	require.False(t, v.idle(map[int]time.Duration{0: s, 1: s}), "seen for the first time")
	require.True(t, v.idle(map[int]time.Duration{0: s, 1: 2 * s}))
	require.False(t, v.idle(map[int]time.Duration{0: s, 1: 2 * s}), "there is no answer yet")
	v.judge([]suspect{{rank: 0, answered: true}})
	require.False(t, v.idle(map[int]time.Duration{0: s, 1: 4 * s}), "rank 1 computes")
	require.True(t, v.idle(map[int]time.Duration{1: 4 * s}), "rank 0 has ended")
	v.judge([]suspect{{rank: 1, answered: true}})
	require.False(t, v.idle(nil))
	require.False(t, v.idle(map[int]time.Duration{1: 4 * s}))
	for _, pause := range []int{0, 1, 3, 7, 15, 31, 63, 64, 64} { // looks that were left out since somebody did not answer
		for range pause {
			require.False(t, v.idle(map[int]time.Duration{1: 4 * s}))
		}
		require.True(t, v.idle(map[int]time.Duration{1: 4 * s}))
		_, ok := v.judge([]suspect{{rank: 1}})
		require.False(t, ok)
	}
}

func TestVigilJudges(t *testing.T) {
	const s = time.Second
	waits := func(rank int, all ...control.Wait) suspect { return suspect{rank: rank, answered: true, waits: all} }
	fence := control.Wait{Op: "fence", Peer: 3, Since: 12 * s, Where: "heat.go:7"}
	for name, c := range map[string]struct {
		all  []suspect
		want string
	}{
		"nobody":          {[]suspect{{rank: 0, ended: "exited"}}, ""},
		"one computes":    {[]suspect{waits(0, fence), waits(1)}, ""},
		"one is deaf":     {[]suspect{waits(0, fence), {rank: 1}}, ""},
		"one came late":   {[]suspect{waits(0, fence), waits(1, control.Wait{Op: "lock", Since: 9 * s})}, ""},
		"the longest":     {[]suspect{waits(0, control.Wait{Op: "lock", Since: 9 * s}, fence)}, "all ranks have waited for 10s: rank 0 in fence for rank 3 at heat.go:7"},
		"without a place": {[]suspect{waits(0, control.Wait{Op: "lock", Peer: -1, Since: 10 * s, Detail: "held\tby rank 1"})}, "all ranks have waited for 10s: rank 0 in lock (held by rank 1) for all"},
		"groups": {
			[]suspect{waits(0, fence), {rank: 1, ended: "exited"}, waits(2, fence), waits(3, control.Wait{Op: "close", Peer: -1, Since: 11 * s}), waits(4, fence), waits(5, fence)},
			"all ranks have waited for 10s: ranks 0,2,4-5 in fence for rank 3 at heat.go:7; rank 3 in close for all",
		},
		"many": {
			[]suspect{
				waits(0, control.Wait{Op: "a", Since: 10 * s}), waits(1, control.Wait{Op: "b", Since: 10 * s}), waits(2, control.Wait{Op: "c", Since: 10 * s}),
				waits(3, control.Wait{Op: "d", Since: 10 * s}), waits(4, control.Wait{Op: "e", Since: 10 * s}), waits(5, control.Wait{Op: "f", Since: 10 * s}),
			},
			"all ranks have waited for 10s: rank 0 in a for rank 0; rank 1 in b for rank 0; rank 2 in c for rank 0; rank 3 in d for rank 0; and 2 more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := vigil{every: 10 * s}
			line, ok := v.judge(c.all)
			require.Equal(t, c.want, line)
			require.Equal(t, c.want != "", ok)
			if ok {
				_, ok = v.judge(c.all)
				require.False(t, ok, "once")
			}
		})
	}
}
