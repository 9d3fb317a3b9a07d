package figures

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/auto"
)

// nic is a NIC opened by this process alone, connected to itself, without the library above it.
type nic struct {
	d      transport.Domain
	sched  *sched.Sched
	ep     transport.EP
	target []byte
	region transport.Region
}

// openNIC opens the NIC of that name, with a registered target of so many bytes.
func openNIC(ctx context.Context, name string, target int, c auto.Config) (n *nic, err error) {
	p, err := auto.Provider(name, c)
	if err != nil {
		return nil, err
	}
	n = &nic{sched: sched.Process(1), target: make([]byte, target)}
	n.d, err = p.Open(ctx, transport.Config{
		Size: 1, Job: fmt.Sprintf("figures-%d", os.Getpid()), Secret: []byte("figures"), Sched: n.sched,
	})
	if err != nil {
		return nil, fmt.Errorf("open the %s NIC: %w", name, err)
	}
	if n.ep, err = n.d.Connect(ctx, 0, n.d.Address()); err == nil && target > 0 {
		clear(n.target)
		n.region, err = n.d.Register(mem.Of(n.target), transport.LocalWrite|transport.RemoteWrite)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the %s NIC: %w", name, err), n.d.Close())
	}
	return n, nil
}

func (n *nic) close() error {
	var err error
	if len(n.target) > 0 {
		err = n.d.Deregister(n.region)
	}
	err = errors.Join(err, n.d.Close())
	runtime.KeepAlive(n.target)
	return err
}

// write puts registered memory to the target and waits until it is there.
func (n *nic) write(src mem.Range, lkey uint64) error {
	ops := []transport.Op{{
		Kind: transport.OpWrite, Flags: transport.FlagSignaled, NSGE: 1, EP: n.ep, RAddr: mem.Of(n.target).Addr(), RKey: n.region.RKey,
		SGE: [4]transport.SGE{{Mem: src, LKey: lkey}},
	}}
	for {
		k, err := n.d.Post(ops)
		if err != nil {
			return fmt.Errorf("post: %w", err)
		}
		if k == 1 {
			break
		}
		runtime.Gosched()
	}
	var cq [1]transport.Completion
	for {
		k, err := n.d.Poll(cq[:])
		switch {
		case err != nil:
			return fmt.Errorf("poll: %w", err)
		case k == 1 && cq[0].Status != transport.StatusOK:
			return fmt.Errorf("a write ended with %v", cq[0].Status)
		case k == 1:
			return nil
		}
		runtime.Gosched()
	}
}

// holds reports whether the target begins with those bytes: F1.
func (n *nic) holds(want []byte) error {
	if !bytes.Equal(n.target[:len(want)], want) {
		return errors.New("wrong result at the target: it does not hold what was put last")
	}
	return nil
}
