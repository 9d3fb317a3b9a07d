package pgas

// addFirehoses adds the counters of memory that is registered in buckets: "hose." those of this rank's use of others' buckets,
// "hose.served." those of its own buckets. Nothing is added where there was none.
func (w *World) addFirehoses(out map[string]float64) {
	origin, served := w.engine.Firehoses()
	if origin.Hits+origin.Joins+origin.Misses+origin.Ahead+served.Moves == 0 {
		return
	}
	unit := float64(w.engine.FirehoseUnit())
	told, untold := w.engine.Foresight()
	for name, v := range map[string]uint64{
		"hits": origin.Hits, "joins": origin.Joins, "misses": origin.Misses, "blocked": origin.Blocked, "refusals": origin.Refusals,
		"moves": origin.Moves, "ahead": origin.Ahead, "orders": origin.Orders,
		"foreseen": origin.Foreseen, "late": origin.Late, "wasted": origin.Wasted, "told": told, "untold": untold,
		"served.moves": served.Moves, "served.refused": served.Refused, "served.deferred": served.Deferred,
		"served.victims": served.Victims, "served.resurrected": served.Resurrected, "served.shared": served.Shared,
		"served.registered": served.Registered, "served.deregistered": served.Deregistered,
	} {
		out["hose."+name] = float64(v)
	}
	out["hose.bytes"] = float64(origin.Units) * unit // of other ranks' memory
	out["hose.served.bytes"], out["hose.served.peak"] = float64(served.Pinned)*unit, float64(served.Peak)*unit
	out["hose.served.idle"] = float64(served.Idle) * unit
}
