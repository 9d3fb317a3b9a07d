package figures

import (
	"context"
	"runtime"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/auto"
)

// Raw is a NIC of this process alone, connected to itself, without the library above it: what its transfers take is the
// least that the library's could. OpenRaw makes one. One goroutine uses it.
type Raw struct {
	n      *nic
	source []byte
	key    transport.Region
}

// OpenRaw opens the NIC of that name with a source and a target of so many bytes, both registered and touched.
func OpenRaw(ctx context.Context, name string, bytes int, c auto.Config) (*Raw, error) {
	n, err := openNIC(ctx, name, bytes, c)
	if err != nil {
		return nil, err
	}
	r := &Raw{n: n, source: make([]byte, bytes)}
	for i := range r.source {
		r.source[i] = byte(i>>8) ^ byte(i)*3 | 1
	}
	if r.key, err = n.d.Register(mem.Of(r.source), transport.LocalWrite); err != nil {
		_ = n.close() // the error that matters is the one above
		return nil, err
	}
	return r, nil
}

// Write writes the first so many bytes of the source to the target and waits for the completion.
func (r *Raw) Write(bytes int) error { return r.n.write(mem.Of(r.source).Slice(0, bytes), r.key.LKey) }

// Check reports an error unless the target holds the first so many bytes of the source.
func (r *Raw) Check(bytes int) error { return r.n.holds(r.source[:bytes]) }

// Close ends both registrations and the NIC.
func (r *Raw) Close() error {
	err := r.n.d.Deregister(r.key)
	if cerr := r.n.close(); err == nil {
		err = cerr
	}
	runtime.KeepAlive(r.source)
	return err
}

// NIC is the NIC itself, to measure registrations with.
func (r *Raw) NIC() transport.Domain { return r.n.d }
