package transporttest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/transport"
)

// InProcess opens jobs whose ranks are goroutines of this process, each by one provider, which provide makes for so many ranks.
func InProcess(provide func(ranks int) transport.Provider) Open {
	return func(t *testing.T, n int) []transport.Domain {
		p := provide(n)
		ds := make([]transport.Domain, n)
		for r := range ds {
			d, err := p.Open(t.Context(), transport.Config{Rank: r, Size: n, Job: "test", Secret: []byte("secret"), Sched: sched.Goroutine(n)})
			require.NoError(t, err)
			ds[r] = d
		}
		return ds
	}
}

// Descriptors counts the open files of this process, for Options.Held; -1 where the system does not tell.
func Descriptors() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(list)
}
