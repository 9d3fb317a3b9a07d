package verbs

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

// TestTwoMachines is one rank of two, each on a machine of its own: number VERBS_TEST_NODE, in a folder that both
// see, VERBS_TEST_FOLDER.
func TestTwoMachines(t *testing.T) {
	me, err := strconv.Atoi(os.Getenv("VERBS_TEST_NODE"))
	if err != nil {
		t.Skip("Caps: no second machine (VERBS_TEST_NODE, VERBS_TEST_FOLDER)")
	}
	folder, it := os.Getenv("VERBS_TEST_FOLDER"), 1-me
	a := open(t, me, 2)
	card := binary.BigEndian.AppendUint64(nil, a.mem.Addr())
	card = append(binary.BigEndian.AppendUint64(card, a.reg.RKey), a.Address()...)
	put := func(name string, text []byte) {
		temporary := filepath.Join(folder, name+".new")
		require.NoError(t, os.WriteFile(temporary, text, 0o600))
		require.NoError(t, os.Rename(temporary, filepath.Join(folder, name)))
	}
	get := func(name string) (text []byte) {
		require.Eventually(t, func() bool {
			text, err = os.ReadFile(filepath.Join(folder, name))
			return err == nil
		}, time.Minute, 50*time.Millisecond, "the other machine has not written %s", name)
		return text
	}
	put("card"+strconv.Itoa(me), card)
	card = get("card" + strconv.Itoa(it))
	raddr, rkey := binary.BigEndian.Uint64(card), binary.BigEndian.Uint64(card[8:])
	ep, err := a.Connect(t.Context(), it, card[16:])
	require.NoError(t, err)

	// Both write a page over there, add to a word of rank 0's, and read their page back.
	page := a.mem.Slice(4096, 4096)
	copy(page.Data(), bytes.Repeat([]byte{byte(me + 1), 2, 3, 4}, 1024))
	op := a.write(ep, raddr+8192, rkey)
	op.SGE[0].Mem = page
	require.Equal(t, transport.StatusOK, a.do(op).Status)
	op.Kind, op.SGE[0].Mem = transport.OpRead, a.mem.Slice(12288, 4096)
	require.Equal(t, transport.StatusOK, a.do(op).Status)
	require.Equal(t, page.Data(), a.mem.Slice(12288, 4096).Data())
	add := a.write(ep, raddr, rkey)
	if me == 0 {
		self, err := a.Connect(t.Context(), 0, a.Address())
		require.NoError(t, err)
		add = a.write(self, a.mem.Addr(), a.reg.RKey)
	}
	add.Kind, add.Arg0, add.SGE[0].Mem = transport.OpFetchAdd, 1, a.mem.Slice(64, 8)
	const adds = 50
	for range adds {
		require.Equal(t, transport.StatusOK, a.do(add).Status)
	}
	put("done"+strconv.Itoa(me), nil)
	get("done" + strconv.Itoa(it))
	add.Arg0 = 0
	require.Equal(t, transport.StatusOK, a.do(add).Status)
	require.EqualValues(t, 2*adds, a.mem.Word64(64).Load())
	require.Equal(t, byte(it+1), a.mem.Data()[8192], "what the other machine has written")
	put("end"+strconv.Itoa(me), nil)
	get("end" + strconv.Itoa(it))
}
