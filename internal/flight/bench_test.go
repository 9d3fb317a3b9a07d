package flight

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/superpipe"
	"gopgas/transport"
)

// BenchmarkUnhold is what each poll pays while a transfer is under way that is not over.
func BenchmarkUnhold(b *testing.B) {
	o, err := superpipe.NewOrigin(superpipe.Config{NIC: idle{}})
	require.NoError(b, err)
	p, _, err := o.Begin(superpipe.Transfer{Local: mem.Of(make([]byte, 1<<20))})
	require.NoError(b, err)
	s := &Flights{flights: []flight{{pipe: p}}}
	for b.Loop() {
		s.unhold()
	}
}

// idle is a NIC that does nothing.
type idle struct{}

func (idle) Caps() transport.Caps { return transport.Caps{MaxMessage: 1 << 20, MaxSGE: 4} }
func (idle) Register(mem.Range, transport.Access) (transport.Region, error) {
	return transport.Region{}, nil
}
func (idle) Deregister(transport.Region) error    { return nil }
func (idle) Post(ops []transport.Op) (int, error) { return 0, nil }
