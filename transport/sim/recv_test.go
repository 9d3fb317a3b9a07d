package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// oneBuffer posts the rank's only receive buffer.
func (r *lone) oneBuffer() {
	n, err := r.d.PostRecv([]transport.Recv{{Cookie: 5, Buf: transport.SGE{Mem: r.mem, LKey: r.reg.LKey}}})
	require.NoError(r.t, err)
	require.Equal(r.t, 1, n)
}

// received waits for the message that it is for.
func (r *lone) received(from int) {
	c := r.wait()
	require.Equal(r.t, transport.OpRecv, c.Kind)
	require.Equal(r.t, transport.StatusOK, c.Status)
	require.EqualValues(r.t, 5, c.Cookie)
	require.EqualValues(r.t, from, c.EP.Index)
	require.EqualValues(r.t, 8, c.Bytes)
}

// TestBufferOfABrokenConnection: a message that its connection's end has caught on its way into a buffer leaves that to the next one.
func TestBufferOfABrokenConnection(t *testing.T) {
	for _, kind := range []transport.Kind{transport.OpSend, transport.OpWriteImm} {
		run(t, 2, Config{Model: round(), MaxRecv: 1}, func(r *lone) {
			if r.rank == 1 {
				r.oneBuffer()
				r.received(0)
				return
			}
			r.post(kind, 1, 10000)
			require.NoError(t, r.s.Sleep(t.Context(), 5*time.Microsecond))
			ep, err := r.d.Connect(t.Context(), 1, r.all[1].d.Address())
			require.NoError(t, err)
			require.NoError(t, r.d.Disconnect(ep))
			require.Equal(t, transport.StatusFlushed, r.wait().Status)
			r.post(kind, 1, 8)
			require.Equal(t, transport.StatusOK, r.wait().Status)
		})
	}
}

// TestBufferOfARefusedWrite: the buffer of a write with immediate whose target is deregistered while it lands is for who waits for one meanwhile.
func TestBufferOfARefusedWrite(t *testing.T) {
	var to transport.Region
	target := mem.Of(make([]uint64, 2048))
	run(t, 3, Config{Model: round()}, func(r *lone) {
		switch r.rank {
		case 0:
			require.NoError(t, r.s.Sleep(t.Context(), 100*time.Microsecond))
			ep, err := r.d.Connect(t.Context(), 1, r.all[1].d.Address())
			require.NoError(t, err)
			n, err := r.d.Post([]transport.Op{{
				Kind: transport.OpWriteImm, Flags: transport.FlagSignaled, NSGE: 1, EP: ep,
				SGE: [4]transport.SGE{{Mem: r.mem.Slice(0, 10000), LKey: r.reg.LKey}}, RAddr: target.Addr(), RKey: to.RKey,
			}})
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.Equal(t, transport.StatusRemoteAccess, r.wait().Status)
		case 1:
			r.oneBuffer()
			var err error
			to, err = r.d.Register(target, transport.AllAccess)
			require.NoError(t, err)
			require.NoError(t, r.s.Sleep(t.Context(), 105*time.Microsecond-r.s.Now()))
			require.NoError(t, r.d.Deregister(to))
			r.received(2)
		case 2:
			require.NoError(t, r.s.Sleep(t.Context(), 103*time.Microsecond))
			r.post(transport.OpSend, 1, 8)
			require.Equal(t, transport.StatusOK, r.wait().Status)
		}
	})
}

// TestPostRecvWhileItCloses: who posts buffers while the NIC is closed is told that.
func TestPostRecvWhileItCloses(t *testing.T) {
	run(t, 1, Config{Model: round()}, func(r *lone) {
		r.s.Go(func() {
			require.NoError(t, r.s.Sleep(t.Context(), 50))
			require.NoError(t, r.d.Close())
		})
		n, err := r.d.PostRecv([]transport.Recv{{Buf: transport.SGE{Mem: r.mem, LKey: r.reg.LKey}}})
		require.ErrorIs(t, err, transport.ErrClosed)
		require.Zero(t, n)
		r.at(100, "it was open when the call began")
	})
}
