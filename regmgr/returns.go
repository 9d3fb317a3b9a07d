package regmgr

import (
	"sync"

	"gopgas/internal/mem"
	"gopgas/internal/predict"
)

// returning foresees which memory comes back. It is made when it is first asked.
type returning struct {
	mu   sync.Mutex
	mind *predict.Returns
}

// Returns notes a use of r by a transfer that is called at a site, any number that tells call sites apart, and returns how many
// transfers a registration of r made now would serve: 1 where nothing speaks for another one, up to 255 for that many or more. It goes by the uses
// of r so far, by what became of other memory that was first used at the site, and by how much of other transfers the budget
// lets a registration survive. covered is Known's word that r is registered now: that is why it cannot have become other memory
// since. Not all uses of memory that is covered need be told: stands is for how many this one stands. It takes one short lock.
func (m *Manager) Returns(site uint64, r mem.Range, covered bool, stands uint8) (uses uint8) {
	reach := m.budget.own()
	p := &m.returning
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mind == nil {
		p.mind = new(predict.Returns)
	}
	return p.mind.Use(site, m.names.Of(r), r.Bytes, covered, stands, reach, m.counts.collections.Load())
}
