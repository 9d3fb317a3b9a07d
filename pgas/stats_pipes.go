package pgas

import "gopgas/internal/superpipe"

// addPipes adds what large transfers in pipes have done: the bytes that this rank has copied and those that its NIC took from where they
// lie, those of leases among them; "lease.flags" is 1 where targets learn of leased data by flags in it, 0 where by writes with immediate;
// "bulk.otherwise." with why are the transfers that did not travel as PGAS_BULK forces them to. Nothing is added where there was none.
func (w *World) addPipes(out map[string]float64) {
	for why, count := range w.engine.Otherwise() {
		out["bulk.otherwise."+why.String()] = float64(count)
	}
	p, ok := w.engine.Pipes()
	if !ok || p.Copied+p.Direct+p.Unready == 0 {
		return
	}
	out["pipe.copied"], out["pipe.direct"], out["lease.direct"] = float64(p.Copied), float64(p.Direct), float64(p.Gathered)
	if p.Unready > 0 {
		out["lease.unready"] = float64(p.Unready)
	}
	switch p.Way {
	case superpipe.WayFlags:
		out["lease.flags"] = 1
	case superpipe.WayImm:
		out["lease.flags"] = 0
	}
}
