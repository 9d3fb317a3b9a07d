package predict

// Line is the cost of an operation on a region in nanoseconds, PerPage·pages + Fixed, as a regression found it.
// Residual is the largest by which a measurement lay above the line.
type Line struct{ PerPage, Fixed, Residual float64 }

// Upper returns the largest cost that the measurements support.
func (l Line) Upper(pages uint32) Nanos {
	return Nanos(l.PerPage*float64(pages) + l.Fixed + l.Residual + 0.5)
}

// Mean returns the line itself.
func (l Line) Mean(pages uint32) Nanos { return Nanos(l.PerPage*float64(pages) + l.Fixed + 0.5) }

// Costs are the helper's estimates of its own work (section 3.2, time control and estimation).
type Costs struct {
	Register, Deregister Line
	Hash                 Nanos   // t_hash: a signature, a look into the call-site table, its update
	Compare              float64 // one comparison in a queue or in the cache
	Poll                 Nanos   // X: how much later than now the helper may really act: its naps and their lateness
	Sharing              Nanos   // n(t_slice + t_cs), where helpers share a core; else 0
}

// The paper assumes that an insertion, an update and a look-up compare all items there are.
func (c *Costs) scan(items int) Nanos { return Nanos(c.Compare*float64(items) + 0.5) }

// GiveBack returns t_p of the deregistration condition for a region of that many pages and queued items in the RQ:
// t_deregister + t_insert + t_register + t_update.
func (c *Costs) GiveBack(pages uint32, queued int) Nanos {
	return c.Deregister.Upper(pages) + c.scan(queued) + c.Register.Upper(pages) + c.scan(queued) + c.Poll + c.Sharing
}

// Delay returns t_p of the registration condition: t_hash + t_cache + t_deregister + t_insert + t_register + t_update,
// where next are the pages of the DQ item that would be handled first, and cached the cache's entries.
func (c *Costs) Delay(pages, next uint32, queued, cached int) Nanos {
	return c.Pair(pages, next, queued, cached) + c.Poll + c.Sharing
}

// Pair returns the cost of one RQ item and one DQ item: the least distance of two deadlines.
func (c *Costs) Pair(pages, next uint32, queued, cached int) Nanos {
	return c.Hash + c.scan(cached) + c.Deregister.Upper(next) + c.scan(queued) + c.Register.Upper(pages) + c.scan(queued)
}
