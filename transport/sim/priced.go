package sim

import "gopgas/transport"

// Costs implements transport.Priced: what the model says of a rank of another node.
func (d *domain) Costs() transport.Costs {
	m := d.f.cfg.Model
	return transport.Costs{
		Post: m.Write.Post, Gap: m.Write.Gap, Latency: m.Latency,
		Write: m.Write.Post + 2*m.Latency + m.Write.Target + m.Reap, Read: m.Read.Post + 2*m.Latency + m.Read.Target + m.Reap,
		Handle: m.Reap, PerByte: float64(m.PerByte) * 1e-12,
		Register: m.Register.Fixed, RegisterPage: m.Register.PerPage,
		Deregister: m.Deregister.Fixed, DeregisterPage: m.Deregister.PerPage, PageBytes: pageBytes,
		Copy: m.CopyCost,
	}
}
