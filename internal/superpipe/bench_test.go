package superpipe

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/shm"
	"gopgas/transport/soft"
)

// BenchmarkBulk is a put of unregistered memory to registered memory of another rank on the soft NIC, held to a
// bandwidth near that of the superpipeline paper's: raw (the source is registered beforehand), and each policy at what
// is its first use of a buffer. The calls' time, up to the last completion, is measured.
func BenchmarkBulk(b *testing.B) {
	const longest = 1 << 20
	group := shm.NewGroup(2, shm.Config{})
	cfg := soft.Config{Bandwidth: 1500 << 20, Mapper: func(c transport.Config) (transport.Mapper, error) { return group[c.Rank], nil }}
	provider := soft.New(cfg)
	ds := make([]transport.Domain, 2)
	for r := range ds {
		d, err := provider.Open(b.Context(), transport.Config{Rank: r, Size: 2, Job: "bench", Secret: []byte("secret"), Sched: sched.Goroutine(2)})
		require.NoError(b, err)
		ds[r] = d
	}
	closeAll(b, ds)
	at := bench(b, ds, longest)
	model, err := Measure(b.Context(), at)
	require.NoError(b, err)
	b.Logf("g %.0f ns, latency %.0f ns, net %.2f GB/s, copy of 64 KiB %.1f, of 1 MiB %.1f GB/s, registration %.1f us + %.0f ns a page",
		model.Gap*1e9, model.Latency*1e9, model.Net/1e9, model.Copy(65536)/1e9, model.Copy(longest)/1e9, model.RegLatency*1e6, 4096/model.Reg*1e9)
	source := mem.Of(make([]uint64, longest/8))
	for i := range source.Data() {
		source.Data()[i] = byte(i)
	}
	key, err := ds[0].Register(source, 0)
	require.NoError(b, err)
	for policy := Super; policy <= PipelinedPins+1; policy++ {
		raw := policy > PipelinedPins
		name := "raw"
		if !raw {
			name = policy.String()
		}
		c := Config{NIC: ds[0], Cookies: originCookies, Model: model, Policy: policy, SlotBytes: 64 << 10}
		if raw {
			c.Policy = Super
		}
		o, err := NewOrigin(c)
		require.NoError(b, err)
		for bytes := 4 << 10; bytes <= longest; bytes *= 4 {
			b.Run(fmt.Sprintf("%s/%d", name, bytes), func(b *testing.B) {
				b.SetBytes(int64(bytes))
				tr := Transfer{Rank: 1, EP: at.EP, Local: source.Slice(0, bytes), RAddr: at.RAddr, RKey: at.RKey, Registered: raw, LKey: key.LKey}
				for b.Loop() {
					put(b, o, ds[0], tr)
				}
			})
		}
	}
}

// put makes one transfer and polls for it.
func put(b *testing.B, o *Origin, d transport.Domain, tr Transfer) {
	p, ok, err := o.Begin(tr)
	if !ok || err != nil {
		b.Fatal(ok, err)
	}
	var cq [16]transport.Completion
	for !p.Done() {
		moved := p.Step()
		n, err := d.Poll(cq[:])
		if err != nil {
			b.Fatal(err)
		}
		for i := range cq[:n] {
			o.Completed(&cq[i])
		}
		if !moved && n == 0 {
			runtime.Gosched()
		}
	}
	if p.Err() != nil {
		b.Fatal(p.Err())
	}
}
