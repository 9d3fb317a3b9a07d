package verbs_test

import (
	"context"
	"errors"
	"fmt"

	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/verbs"
)

// usable says of a port what a person wants to know.
func usable(d verbs.Device) string {
	if d.Problem != "" {
		return d.Name + ": " + d.Problem
	}
	return fmt.Sprintf("%s: %s, %d bytes, %s", d.Name, d.Link, d.MTU, d.Address)
}

func ExampleDevice() {
	fmt.Println(usable(verbs.Device{Name: "mlx5_0:1", Active: true, Link: "Ethernet", MTU: 4096, Address: "::ffff:10.0.0.7"}))
	fmt.Println(usable(verbs.Device{Name: "mlx5_1:1", Problem: "the port has no link"}))
	// Output:
	// mlx5_0:1: Ethernet, 4096 bytes, ::ffff:10.0.0.7
	// mlx5_1:1: the port has no link
}

// On a machine without RDMA the provider says so; nothing was linked against libibverbs.
func ExampleProvider() {
	var p verbs.Provider
	d, err := p.Open(context.Background(), transport.Config{Size: 1, Device: "no-such-device", Sched: sched.Goroutine(1)})
	fmt.Println(p.Name(), d == nil, errors.Is(err, transport.ErrUnsupported))
	// Output: verbs true true
}

// An operation that failed, in the device's words.
func ExampleStatusError() {
	var err error = &verbs.StatusError{
		Op: "write", Peer: 3, Status: "transport retry counter exceeded", Code: 12, Vendor: 129,
		Cause: "the peer does not answer: its process has ended, or the network lost it", Err: transport.ErrPeerGone,
	}
	fmt.Println(errors.Is(err, transport.ErrPeerGone))
	var status *verbs.StatusError
	fmt.Println(errors.As(err, &status), status.Peer, status.Status)
	// Output:
	// true
	// true 3 transport retry counter exceeded
}
