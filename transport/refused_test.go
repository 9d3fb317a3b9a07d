package transport_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

// TestSpares: a refusal is no death where the process is known to live; other errors are none of the kind.
func TestSpares(t *testing.T) {
	for err, refusal := range map[error]bool{
		syscall.ECONNREFUSED: true, syscall.ECONNRESET: true, syscall.EPIPE: true, io.EOF: true,
		fmt.Errorf("%w: %w", transport.ErrPeerGone, io.ErrUnexpectedEOF): true,
		syscall.ENETUNREACH: false, syscall.ETIMEDOUT: false, os.ErrDeadlineExceeded: false, syscall.EMFILE: false, errors.New("x"): false,
	} {
		for _, tells := range [][2]bool{{true, true}, {false, true}, {true, false}, {false, false}} {
			c := transport.Config{Lives: func(rank int) (lives, known bool) { return tells[0] && rank == 3, tells[1] }}
			require.Equal(t, refusal && tells[0] && tells[1], c.Spares(3, err), "%v %v", err, tells)
			require.False(t, c.Spares(4, err))
		}
		var silent transport.Config
		require.False(t, silent.Spares(3, err))
		lives, known := silent.LifeOf(3)
		require.False(t, lives || known)
	}
}
