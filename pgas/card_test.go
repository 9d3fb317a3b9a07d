package pgas

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/bootstrap"
)

func TestCardHoldsWhatWasPutIn(t *testing.T) {
	h := bootstrap.Host{Name: "node17", BootID: "b", PID: 4711}
	c := newCard("settings", h, " part 1", []int{3, 300}, []int{3, 4, 300})
	require.NoError(t, c.check())
	require.Equal(t, "settings", string(c.field(cardConfig)))
	require.Equal(t, h.Node()+" part 1", string(c.field(cardNode)))
	require.Equal(t, "node17", c.host())
	require.Equal(t, 4711, c.pid())
	require.Equal(t, "b", string(c.field(cardMachine)))
	require.Equal(t, []byte{3, 0, 44, 1}, c.field(cardCores))
	require.Equal(t, []byte{3, 0, 4, 0, 44, 1}, c.field(cardAllCores))
}

func TestCardRefusesWhatIsNone(t *testing.T) {
	good := newCard("settings", bootstrap.Host{Name: "n"}, "", []int{1}, []int{1})
	for n := range good {
		require.ErrorIs(t, good[:n].check(), errRankCard, "the first %d bytes", n)
	}
	require.ErrorIs(t, append(good, 0).check(), errRankCard)
}

// TestUnlikeSettings: what differs between two ranks is told by its variables, and nothing else is.
func TestUnlikeSettings(t *testing.T) {
	a := Config{Transport: "soft", NoLocal: true, Check: "races"}
	for name, c := range map[string]struct {
		b        Config
		ofA, ofB string
	}{
		"a transport": {Config{Transport: "tcp", NoLocal: true, Check: "races"}, "PGAS_TRANSPORT=soft", "PGAS_TRANSPORT=tcp"},
		"unset":       {Config{Transport: "soft", Check: "races"}, "PGAS_LOCAL=off", "PGAS_LOCAL unset"},
		"several": {
			Config{Transport: "soft", NoLocal: true, Stats: true, FailureTimeout: time.Second},
			"PGAS_STATS unset PGAS_FAILURE_TIMEOUT unset PGAS_CHECK=races", "PGAS_STATS=1 PGAS_FAILURE_TIMEOUT=1s PGAS_CHECK unset",
		},
		"nodes":   {Config{Transport: "soft", NoLocal: true, Check: "races", Nodes: []int{0, 0, 1}}, "PGAS_NODES unset", "PGAS_NODES=0,0,1"},
		"nothing": {a, "", ""},
	} {
		ofA, ofB := unlike(a.shared(), c.b.shared())
		require.Equal(t, c.ofA, ofA, name)
		require.Equal(t, c.ofB, ofB, name)
	}
}

// TestIdleCores: what is left for helpers is what the job may use and no rank is bound to, or more than there are ranks.
func TestIdleCores(t *testing.T) {
	all := []int{0, 1, 2, 3}
	for name, c := range map[string]struct {
		ranks [][]int
		job   []int
		cores int
		spare []int
	}{
		"not bound":                    {[][]int{all, all}, all, 4, nil},
		"bound to cores":               {[][]int{{0}, {2}}, all, 4, []int{1, 3}},
		"bound to all there are":       {[][]int{{0}, {1}}, []int{0, 1}, 2, nil},
		"bound to one, both":           {[][]int{{0}, {0}}, []int{0, 1}, 3, []int{1}},
		"bound to halves":              {[][]int{{0, 1}, {2, 3}}, all, 4, nil},
		"the launcher is not known":    {[][]int{{0}, {1}}, nil, 2, nil},
		"more ranks than cores, bound": {[][]int{{0}, {1}, {0}, {1}}, []int{0, 1, 7}, 5, []int{7}},
	} {
		w := &World{job: bootstrap.InProcess(1)[0]}
		for _, cores := range c.ranks {
			w.cards = append(w.cards, newCard("", bootstrap.Host{Name: "n"}, "", cores, cores))
		}
		w.cards = append(w.cards, newCard("", bootstrap.Host{Name: "another"}, "", []int{9}, []int{9}))
		nodes, here, _ := w.nodes()
		cores, spare := w.idleCores(nodes, here, c.job)
		require.Equal(t, c.cores, cores, name)
		require.Equal(t, c.spare, spare, name)
	}
	require.NotEmpty(t, ownCores())
}

// TestCrowd: ranks of other nodes of the same machine want its cores too.
func TestCrowd(t *testing.T) {
	two, four := []int{0, 1}, []int{0, 1, 2, 3}
	container := func(n uint64) bootstrap.Host { return bootstrap.Host{BootID: "kernel", IPCNamespace: n} }
	for name, c := range map[string]struct {
		hosts      []bootstrap.Host // of ranks after the first, which is in container 1
		nodes      []int
		given, all []int
		ranks, on  int
	}{
		"alone":                    {nil, nil, two, two, 1, 2},
		"room for both containers": {[]bootstrap.Host{container(2)}, nil, two, two, 1, 2},
		"three containers":         {[]bootstrap.Host{container(2), container(3)}, nil, two, two, 3, 2},
		"two nodes of PGAS_NODES":  {[]bootstrap.Host{container(1), container(1), container(1)}, []int{0, 0, 1, 1}, two, two, 4, 2},
		"another machine":          {[]bootstrap.Host{{BootID: "other"}, {BootID: "other"}}, nil, two, two, 1, 2},
		"one core's time each":     {[]bootstrap.Host{container(2), container(3), container(4)}, nil, []int{0}, four, 1, 1},
		"a node that is crowded":   {[]bootstrap.Host{container(1), container(1), container(2)}, nil, two, two, 3, 2},
	} {
		config := Config{Nodes: c.nodes}
		w := &World{job: bootstrap.InProcess(1)[0]}
		for r, h := range append([]bootstrap.Host{container(1)}, c.hosts...) {
			w.cards = append(w.cards, newCard("", h, config.part(r), c.given, c.all))
		}
		_, here, cores := w.nodes()
		ranks, on := w.crowd(here, cores)
		require.Equal(t, []int{c.ranks, c.on}, []int{ranks, on}, name)
	}
}
