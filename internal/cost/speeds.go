package cost

// Speeds are bandwidths, bytes per second, by length, with straight lines between them and no change beyond them.
type Speeds []struct{ Bytes, Speed float64 }

// At is the bandwidth for some length. There is one point at least.
func (s Speeds) At(bytes float64) float64 {
	for i, p := range s {
		switch {
		case bytes > p.Bytes:
		case i == 0:
			return p.Speed
		default:
			last := s[i-1]
			return last.Speed + (bytes-last.Bytes)/(p.Bytes-last.Bytes)*(p.Speed-last.Speed)
		}
	}
	return s[len(s)-1].Speed
}
