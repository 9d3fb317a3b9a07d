package superpipe

import (
	"math"

	"gopgas/internal/cost"
)

// Model is the cost model of Denis, "A High-Performance Superpipeline Protocol for InfiniBand" (Euro-Par 2011): the
// constants of one machine and its network. Times are in seconds, bandwidths in bytes per second, lengths in bytes;
// lengths and counts are real numbers, as in the paper. The methods are the equations as printed, with the erratum of
// its section 2 applied; nothing is rounded. A Model is a value and safe for concurrent use.
type Model struct {
	Gap     float64 // g: between two messages
	Latency float64 // lambda_net: of a message, one way
	Net     float64 // B_net: of a raw write

	// Copy is B_copy(L): of copying a message of L bytes in all, whatever the chunks; it falls from cache level to
	// cache level.
	Copy func(bytes float64) float64 `json:"-"`

	// Copies are what Copy was made of; none where it is a formula.
	Copies cost.Speeds

	// Slowed is by how much of B_net copies are slower while the NIC moves bytes: 1 at most (section 3), 0 where it does not disturb them.
	Slowed float64

	// FreshStart and Fresh say what copies take whose source nobody has touched for long, as that of a first use is: it is in no cache, and
	// the processor must look its pages up. They begin late, and then go on with a bandwidth of their own. 0: nobody has measured; as Copy.
	FreshStart, Fresh float64

	// Cut is what the same bytes take longer as one message more, in seconds. The paper takes g for it, between messages of no length; but
	// behind a long message a NIC prepares the next one. 0: nobody has measured; Gap.
	Cut float64

	RegLatency float64 // lambda_reg: of registering nothing
	Reg        float64 // B_reg: of registering much

	// Writes and Reads are what one write and one read between registered memory take until their completion is polled,
	// which the paper has no term for: they bend where its wire is straight. Empty where nobody has measured: then Put and
	// Fetch follow from the constants above.
	Writes, Reads cost.Curve
}

// Put is the time of a raw write until its completion.
func (m *Model) Put(length float64) float64 {
	if len(m.Writes) == 0 {
		return m.Wire(length) + m.Latency
	}
	return m.Writes.Seconds(length)
}

// Fetch is the time of a raw read until its data is there.
func (m *Model) Fetch(length float64) float64 {
	if len(m.Reads) == 0 {
		return m.Wire(length) + m.Latency
	}
	return m.Reads.Seconds(length)
}

// Reading is the model of gets: that of puts, with the bandwidth and the latency of reads for the wire's.
func (m *Model) Reading() *Model {
	r := *m
	if len(m.Reads) > 0 {
		r.Writes, r.Net, r.Latency = m.Reads, bandwidth(m.Reads), m.Reads[0].Nanos/2*1e-9
	}
	return &r
}

// Hides reports whether even copies of fresh memory are so much faster than the wire that chunks can grow as steeply as is planned with:
// then all of them but the first hides. Where they are not, copying is what takes the time, and how it begins is no matter.
func (m *Model) Hides() bool { return m.Fresh-m.Slowed*m.Net >= steepest*m.Net }

// Cutting is what each chunk costs.
func (m *Model) Cutting() float64 {
	if m.Cut > 0 && m.Hides() {
		return m.Cut
	}
	return m.Gap
}

// head is what copying the first chunk takes of a transfer of some length.
func (m *Model) head(chunk, length float64) float64 {
	t := chunk / m.Copy(length)
	if m.Hides() {
		t = max(t, m.FreshStart+chunk/m.Fresh)
	}
	return t
}

// least is the smallest chunk behind whose transfer one q times as long can be copied out of fresh memory and posted: equation 4, with g and the
// latency for what posting and polling take. 0: that does not bound it.
func (m *Model) least(q float64) float64 {
	if !m.Hides() {
		return 0
	}
	return min(defaultFirst, (m.FreshStart+m.Gap+m.Latency)/(1/m.Net-q/(m.Fresh-m.Slowed*m.Net)))
}

// Wire is T_net(L) of section 3: a raw write from registered memory to registered memory.
func (m *Model) Wire(length float64) float64 { return m.Latency + length/m.Net }

// Register is T_reg(L) of section 2.
func (m *Model) Register(length float64) float64 { return m.RegLatency + length/m.Reg }

// CopyTime is T_copy(L) of section 3.
func (m *Model) CopyTime(length float64) float64 { return length / m.Copy(length) }

// OnTheFly is a transfer whose ends register at the same time, then send: section 2.
func (m *Model) OnTheFly(length float64) float64 { return m.Register(length) + m.Wire(length) }

// OnTheFlyLimit is the bandwidth that OnTheFly tends to: 1/(1/B_net + 1/B_reg).
func (m *Model) OnTheFlyLimit() float64 { return 1 / (1/m.Net + 1/m.Reg) }

// NaiveCopy is a transfer that copies all at the source, sends, then copies all at the target: section 2.
func (m *Model) NaiveCopy(length float64) float64 { return 2*m.CopyTime(length) + m.Wire(length) }

// NaiveCopyLimit is the bandwidth that NaiveCopy tends to near the given length. The paper prints 1/(1/B_net +
// 1/B_copy), but the protocol copies twice and the 57 % of the text needs 1/(1/B_net + 2/B_copy).
func (m *Model) NaiveCopyLimit(length float64) float64 { return 1 / (1/m.Net + 2/m.Copy(length)) }

// Pipeline is equation 1: the pipeline of chunks of one size.
func (m *Model) Pipeline(length, chunk float64) float64 {
	return 2*chunk/m.Copy(length) + length/chunk*m.Gap + m.Latency + length/m.Net
}

// PipelineSlope is equation 2: the derivative of equation 1 by the chunk size.
func (m *Model) PipelineSlope(length, chunk float64) float64 {
	return 2/m.Copy(length) - length/(chunk*chunk)*m.Gap
}

// BestChunk is C_opt(L), equation 3. One above L means one chunk, which is the naive copy.
func (m *Model) BestChunk(length float64) float64 {
	return math.Sqrt(length * m.Gap * m.Copy(length) / 2)
}

// NextChunk is equation 4 solved for C_{i+1}: what can be copied while a chunk is sent, with the overhead o of
// posting, in seconds.
func (m *Model) NextChunk(length, chunk, overhead float64) float64 {
	return (chunk/m.Net + m.Gap - overhead) * m.Copy(length)
}

// Ratio is q of equation 5 for copies that the NIC does not slow down.
func (m *Model) Ratio(length float64) float64 { return m.Copy(length) / m.Net }

// OverlappedRatio is q for copies that lose as much bandwidth as the NIC uses (section 3 gives it as the bound).
func (m *Model) OverlappedRatio(length float64) float64 { return (m.Copy(length) - m.Net) / m.Net }

// nth is C_i of equation 5.
func nth(first, ratio, i float64) float64 { return first * math.Pow(ratio, i) }

// sum is equation 6: the bytes of n chunks. A ratio of 1 gives its limit.
func sum(first, ratio, n float64) float64 {
	if ratio == 1 {
		return first * n
	}
	return first * (math.Pow(ratio, n) - 1) / (ratio - 1)
}

// gaps is n of equation 7, a real number; ratio is greater than 1.
func gaps(length, first, ratio float64) float64 {
	return math.Log1p(length/first*(ratio-1)) / math.Log(ratio)
}

// Superpipeline is equation 8. It has C_n where the last index is n-1, as printed.
func (m *Model) Superpipeline(length, first, ratio float64) float64 {
	n := gaps(length, first, ratio)
	return (first+nth(first, ratio, n))/m.Copy(length) + n*m.Gap + m.Wire(length)
}

// SubBlocked is equation 9: the target copies block by block behind the NIC, and the copy of the first chunk hides
// behind the rendezvous.
func (m *Model) SubBlocked(length, first, ratio, block float64) float64 {
	return block/m.Copy(length) + m.Gap*gaps(length, first, ratio) + m.Wire(length)
}

// FirstChunk is C_0 of section 4: what is copied during a round trip.
func (m *Model) FirstChunk(length float64) float64 { return m.Copy(length) * 2 * m.Latency }
