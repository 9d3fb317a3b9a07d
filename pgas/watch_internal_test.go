//go:build linux

package pgas

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/bootstrap"
	"gopgas/internal/peers"
	"gopgas/internal/proto"
)

// TestEndOfAProcess: a process's end is seen by its descriptor, and where that is refused by looking; also before its parent has
// asked for it.
func TestEndOfAProcess(t *testing.T) {
	refused := func(int) (int, error) { return -1, unix.EPERM }
	for name, open := range map[string]func(int) (int, error){"descriptor": openProcess, "refused": refused} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("cat")
			in, err := cmd.StdinPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			pid := cmd.Process.Pid
			stop := make(chan struct{})
			ended := make(chan bool, 2)
			go func() { ended <- awaitEnd(pid, open, stop) }()
			close(stop)
			require.False(t, <-ended, "it lives")
			go func() { ended <- awaitEnd(pid, open, nil) }()
			require.NoError(t, in.Close())
			select {
			case ok := <-ended: // nobody has waited for it: it is a zombie
				require.True(t, ok)
			case <-time.After(20 * time.Second):
				t.Fatal("its end was not seen")
			}
			require.NoError(t, cmd.Wait())
			require.True(t, awaitEnd(pid, open, nil), "nor is it there afterwards")
		})
	}
}

// TestLives: what a NIC is told of the process of a rank that takes no connection.
func TestLives(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	const ranks = 5 // this process has ranks 0 and 1, and cat is rank 2; the others are on another node
	w := &World{job: bootstrap.InProcess(ranks)[0], engine: &proto.Engine{Peers: peers.New(ranks), Nodes: []int{0, 0, 0, 1, 1}}}
	host := bootstrap.ThisHost()
	for rank := range ranks {
		h := host
		if rank == 2 {
			h.PID = cmd.Process.Pid
		}
		w.cards = append(w.cards, newCard("", h, "", nil, nil))
	}
	check := func(rank int, launcherTells, lives, known bool) {
		t.Helper()
		gotLives, gotKnown := w.lives(rank, launcherTells)
		require.Equal(t, []bool{lives, known}, []bool{gotLives, gotKnown}, "rank %d", rank)
	}
	check(1, false, false, false) // a goroutine of this process
	check(2, false, true, true)
	check(3, false, false, false)
	check(3, true, true, true) // or the launcher would have told
	w.engine.Peers.MarkGone(4, peers.Silent)
	check(4, true, false, true)
	require.NoError(t, in.Close())
	require.Eventually(t, func() bool { // nobody has waited for it: it is a zombie
		lives, known := w.lives(2, true)
		return known && !lives
	}, 20*time.Second, time.Millisecond)
	require.NoError(t, cmd.Wait())
	check(2, true, false, true)
}

func TestStatLife(t *testing.T) {
	line := func(name, state string) string {
		return "7 (" + name + ") " + state + " 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 8 9\n"
	}
	require.Equal(t, "4711", statLife(line("cat", "S")))
	require.Equal(t, "4711", statLife(line("a) Z 1 (b", "R")))
	require.Empty(t, statLife(line("cat", "Z")))
	require.Empty(t, statLife(line("cat", "X")))
	require.Equal(t, "not shown", statLife(""))
}

func TestGiven(t *testing.T) {
	require.Equal(t, []int{3, 5, 7}, given([]int{3, 5, 7}, 0))
	require.Equal(t, []int{3, 5}, given([]int{3, 5, 7}, 2))
	require.Equal(t, []int{3, 5, 7}, given([]int{3, 5, 7}, 4))
}
