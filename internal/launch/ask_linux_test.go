package launch

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/crew"
)

// stuck is a rank on a host that does not answer.
type stuck struct{ crew.Process }

func (stuck) PID() int { return 7 }

func (stuck) Look(stop <-chan struct{}) crew.Look {
	<-stop
	return crew.Look{Text: "nor does host b"}
}

// TestGiveUp: ranks that do not end even when killed are waited for once, not one after the other.
func TestGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log buffer
		j := &job{ranks: []*member{{host: "b", hand: stuck{}, end: &RankEnd{}}}}
		j.log.to = j.screens.sink(&log)
		for r := range 64 {
			j.ranks = append(j.ranks, &member{rank: 1 + r, host: "b", hand: stuck{}})
		}
		begun := time.Now()
		require.Equal(t, 64, j.giveUp())
		require.Equal(t, answerTime, time.Since(begun))
		require.Equal(t, 64, strings.Count(log.String(), "process 7, does not end even when killed: nor does host b\n"), log.String())
		require.NotContains(t, log.String(), "rank 0 ")
	})
}
