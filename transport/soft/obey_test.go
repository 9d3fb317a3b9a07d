package soft_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/shm"
)

// obey is what another rank can be told to do.
func (r *rank) obey(word string, args []string) (string, error) {
	n := make([]int, len(args))
	for i, a := range args {
		n[i], _ = strconv.Atoi(a)
	}
	switch word {
	case "cards":
		return "", r.learn(args)
	case "fill": // seed, off, bytes
		fill(r.mem.Slice(n[1], n[2]), n[0])
		return "", nil
	case "check": // seed, off, bytes
		return "", check(r.mem.Slice(n[1], n[2]), n[0])
	case "word": // off
		return fmt.Sprint(r.mem.Word64(n[0]).Load()), nil
	case "add": // off, times: with the CPU
		for range n[1] {
			r.mem.Word64(n[0]).Add(1)
		}
		return "", nil
	case "litmus": // off, rounds
		return "", r.litmus(n[0], n[1])
	case "connect":
		return "", r.connect(n[0])
	case "recv": // buffers, bytes: from the end of the memory down
		return "", r.postRecvs(n[0], n[1])
	case "echo": // messages: each is sent back
		return "", r.echo(n[0])
	case "storm": // kind, peer, bytes: without end
		return "", r.storm(transport.Kind(n[0]), n[1], n[2])
	case "traffic": // peer, operations, the rank that will die
		return r.traffic(n[0], n[1], n[2])
	case "polls": // peer, operations
		return r.polls(n[0], n[1])
	case "vandal": // seed, milliseconds
		return "", r.vandal(uint64(n[0]), time.Duration(n[1])*time.Millisecond)
	case "close":
		return "", r.d.Close()
	}
	return "", fmt.Errorf("no such order")
}

func patternWord(seed, i int) uint64 { return (uint64(seed)<<32 + uint64(i)) * 0x9e3779b97f4a7c15 }

func fill(m mem.Range, seed int) {
	for i, w := range mem.Slice[[8]byte](m) {
		_ = w
		binary.LittleEndian.PutUint64(m.Data()[8*i:], patternWord(seed, i))
	}
	for i := m.Bytes &^ 7; i < m.Bytes; i++ {
		m.Data()[i] = byte(seed)
	}
}

func check(m mem.Range, seed int) error {
	for i := range m.Bytes / 8 {
		if v := binary.LittleEndian.Uint64(m.Data()[8*i:]); v != patternWord(seed, i) {
			return fmt.Errorf("word %d of %d bytes is %#x, not %#x", i, m.Bytes, v, patternWord(seed, i))
		}
	}
	for i := m.Bytes &^ 7; i < m.Bytes; i++ {
		if m.Data()[i] != byte(seed) {
			return fmt.Errorf("byte %d of %d is %d, not %d", i, m.Bytes, m.Data()[i], byte(seed))
		}
	}
	return nil
}

// Layout of the litmus: data, then a flag on a cache line of its own, whose bytes are all equal.
const litmusData = 4096

// litmus waits for flag after flag and looks at the data at once. It lets the writer go on by a word that the
// writer reads.
func (r *rank) litmus(off, rounds int) error {
	flag, ack := r.mem.Word64(off+litmusData), r.mem.Word64(off+litmusData+64)
	deadline := time.Now().Add(60 * time.Second)
	for k := 1; k <= rounds; k++ {
		want, before := uint64(k%251)*0x0101010101010101, uint64((k-1)%251)*0x0101010101010101
		for spins := 0; ; spins++ {
			v := flag.Load()
			if v == want {
				break
			}
			if v != before {
				return fmt.Errorf("round %d: a torn flag: %#x", k, v)
			}
			if spins%1000 == 999 {
				sched.Yield()
			}
			if spins%1_000_000 == 999_999 && time.Now().After(deadline) {
				return fmt.Errorf("round %d: no flag", k)
			}
		}
		for i, v := range mem.Slice[uint64](r.mem.Slice(off, litmusBytes(k))) {
			if v != uint64(k) {
				return fmt.Errorf("round %d: the flag was there before word %d, which is %d", k, i, v)
			}
		}
		ack.Store(uint64(k))
	}
	return nil
}

func litmusBytes(k int) int { return []int{8, 64, 256, 1000, 4096}[k%5] }

// polls adds to a peer's word, one operation at a time, and answers how often it has polled for that.
func (r *rank) polls(peer, operations int) (string, error) {
	if err := r.connect(peer); err != nil {
		return "", err
	}
	var cq [1]transport.Completion
	count := 0
	for range operations {
		if err := r.post(r.op(transport.OpFetchAdd, peer, 0, 0, 8)); err != nil {
			return "", err
		}
		for n := 0; n == 0; count++ {
			var err error
			if n, err = r.d.Poll(cq[:]); err != nil {
				return "", err
			}
		}
		if cq[0].Status != transport.StatusOK {
			return "", fmt.Errorf("status %d", cq[0].Status)
		}
	}
	return fmt.Sprint(count), nil
}

// postRecvs posts buffers whose cookies are their offsets.
func (r *rank) postRecvs(count, bytes int) error {
	r.recvBytes = bytes
	for i := range count {
		off := memBytes - (i+1)*bytes
		n, err := r.d.PostRecv([]transport.Recv{{Buf: transport.SGE{Mem: r.mem.Slice(off, bytes), LKey: r.reg.LKey}, Cookie: uint64(off)}})
		if n != 1 || err != nil {
			return fmt.Errorf("post receive: %d, %w", n, err)
		}
	}
	return nil
}

func isRecv(c transport.Completion) bool { return c.Kind == transport.OpRecv }

func (r *rank) echo(messages int) error {
	for range messages {
		c, err := r.await(20*time.Second, isRecv)
		if err != nil {
			return err
		}
		if c.Status != transport.StatusOK {
			return fmt.Errorf("receive: status %d", c.Status)
		}
		op := r.op(transport.OpSend, int(c.EP.Index), int(c.Cookie), 0, int(c.Bytes))
		op.EP, op.Imm = c.EP, c.Imm+1
		if r.eps[c.EP.Index] != c.EP {
			if err := r.connect(int(c.EP.Index)); err != nil {
				return err
			}
		}
		if err := r.must(op); err != nil {
			return err
		}
		if n, err := r.d.PostRecv([]transport.Recv{{Buf: transport.SGE{Mem: r.mem.Slice(int(c.Cookie), r.recvBytes), LKey: r.reg.LKey}, Cookie: c.Cookie}}); n != 1 || err != nil {
			return fmt.Errorf("post receive: %d, %w", n, err)
		}
	}
	return nil
}

// storm goes on until the process is killed.
func (r *rank) storm(kind transport.Kind, peer, bytes int) error {
	if err := r.connect(peer); err != nil {
		return err
	}
	fmt.Println("storming")
	for {
		op := r.op(kind, peer, 0, 0, bytes)
		op.Arg0 = 1
		if err := r.must(op); err != nil {
			return err
		}
	}
}

// traffic writes to a peer that lives while another dies, and tells how long after the beginning it heard of it.
func (r *rank) traffic(peer, operations, mortal int) (string, error) {
	for _, p := range []int{peer, mortal} {
		if err := r.connect(p); err != nil {
			return "", err
		}
	}
	fmt.Println("traffic")
	for range operations {
		if err := r.must(r.op(transport.OpWrite, peer, 0, 8<<20+r.me<<16, 4096)); err != nil {
			return "", err
		}
	}
	c, err := r.await(10*time.Second, func(c transport.Completion) bool { return c.Kind == transport.OpPeerDown })
	if err == nil && (c.EP != r.eps[mortal] || c.Status != transport.StatusPeerGone) {
		err = fmt.Errorf("%+v, but rank %d died", c, mortal)
	}
	if len(r.got) > 0 {
		err = errors.Join(err, fmt.Errorf("completions too many: %v", r.got))
	}
	return "down", err
}

// vandal maps rank 0's queues and writes into them what it likes, but for the few words that say what they are.
func (r *rank) vandal(seed uint64, long time.Duration) error {
	const head, mac = 44, 32 // what stands around the token in an address
	m, err := shm.Open(shm.Config{})
	if err != nil {
		return err
	}
	defer m.Close()
	addr := r.peers[0].addr
	board, err := m.Map(transport.Token(addr[head : len(addr)-mac]))
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	for end := time.Now().Add(long); time.Now().Before(end); {
		for range 100 {
			off := 64 + 8*rng.IntN(board.Bytes/8-8)
			if rng.IntN(2) == 0 { // where requests lie, rather than the key table
				off = 64 + 8*rng.IntN(min(2048, board.Bytes/8-8))
			} else if rng.IntN(2) == 0 {
				off = board.Bytes - 8 - 8*rng.IntN(2048)
			}
			v := rng.Uint64() >> (rng.IntN(8) * 8)
			if rng.IntN(4) == 0 {
				v = board.Word64(64+8*rng.IntN(board.Bytes/8-8)).Load() + uint64(rng.IntN(17)) - 8
			}
			board.Word64(off).Store(v)
		}
	}
	return nil
}
