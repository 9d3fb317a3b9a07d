package proto

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"

	"gopgas/internal/am"
	"gopgas/internal/flight"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/prices"
	"gopgas/transport"
)

// To know what transfers with a peer take one has to make some, with memory there that is nobody's. So a rank lends some of its own, registered, to who
// asks, one at a time, until that gives it back or is gone.
const (
	askLoan   = askFlight + uint8(flight.Kinds) + iota // so many bytes. Answer: address, key, how many bytes
	askReturn                                          // the loan is returned
	askPrices                                          // see device.tell
)

const (
	loanMost   = 4 << 20 // bytes
	loanAnswer = 24      // likewise
)

// lending is what this rank has lent.
type lending struct {
	mu   sync.Mutex
	to   int // a rank, plus one; 0: nobody
	kept mem.Range
	key  transport.Region
}

// loanBytes is how much memory this rank asks for, and lends.
func (n *device) loanBytes() int { return min(loanMost, n.gaugeBytes()) }

// lendTo answers askLoan.
func (n *device) lendTo(r am.Request, out []byte) (int, uint8) {
	l := &n.lending
	l.mu.Lock()
	defer l.mu.Unlock()
	bytes := int(min(r.Args[0], uint64(n.loanBytes()))) &^ 7
	if bytes == 0 || len(out) < loanAnswer {
		return 0, statusMalformed
	}
	if l.to == 0 {
		memory := mem.Make(bytes)
		key, err := n.Domain.Register(memory, transport.LocalWrite|transport.RemoteWrite|transport.RemoteRead)
		if err != nil {
			return 0, statusRefused
		}
		l.to, l.kept, l.key = r.From+1, memory, key
	}
	if l.to != r.From+1 {
		return 0, statusRefused
	}
	binary.LittleEndian.PutUint64(out, l.kept.Addr())
	binary.LittleEndian.PutUint64(out[8:], l.key.RKey)
	binary.LittleEndian.PutUint64(out[16:], uint64(l.kept.Bytes))
	return loanAnswer, statusOK
}

// endLoan takes back what was lent to a rank, if anything was: it has nothing under way there, or is gone. It waits for nothing.
func (n *device) endLoan(to int) {
	l := &n.lending
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to != to+1 {
		return
	}
	kept, key := l.kept, l.key
	l.to, l.kept, l.key = 0, mem.Range{}, transport.Region{}
	n.Go(func() {
		_ = n.Domain.Deregister(key) // if the NIC is closing it goes with that
		runtime.KeepAlive(kept)
	})
}

// borrow asks a rank for a loan.
func (n *device) borrow(rank int) (g prices.Loan, err error) {
	var loan [loanAnswer]byte
	if err := n.inquire(rank, askLoan, [4]uint64{uint64(n.loanBytes())}, loan[:]); err != nil {
		return g, fmt.Errorf("memory to measure transfers with: %w", err)
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(loan[8*i:]) }
	return prices.Loan{Rank: rank, Addr: word(0), Key: word(1), Bytes: int(word(2))}, nil
}

// giveBack returns a rank's loan, in which nothing of this rank is under way.
func (n *device) giveBack(rank int) {
	_ = n.inquire(rank, askReturn, [4]uint64{}, nil) // who does not answer is gone
}

// inquire asks a rank something that measuring needs, and waits for its answer. Where that is shorter than there is room for, the rest is anything.
func (n *device) inquire(rank int, what uint8, args [4]uint64, answer []byte) error {
	const name = "measure"
	k, err := n.Keep(name, rank, len(answer) > nic.ScratchBytes, true)
	if err != nil {
		return err
	}
	if err := n.Ask(name, k.ID, what, args, mem.Range{}); err != nil {
		n.PartDone(k.Handle, nil)
		return err
	}
	defer n.Give(k.ID)
	if err := k.Wait(context.Background()); err != nil {
		return err
	}
	buf, _ := n.Buffer(k.ID, len(answer))
	copy(answer, buf.Data())
	return nil
}
