package pgas

// ExtraStats is extra for tests.
func ExtraStats(w *World) map[string]float64 { return w.extra() }
