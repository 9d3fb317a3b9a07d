package regmgr

import (
	"fmt"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// Victims are registrations that somebody else keeps under a manager's budget and does not use at the moment, such as the
// buckets that firehose has registered for other ranks which have let go of them. When room is needed, the cache's idle
// regions and they go by one rule: whatever was not used for the longest time goes first. *firehose.Server is one.
type Victims interface {
	// Oldest returns when the first one to go fell idle, by Manager.Uses; ok is false where there is none.
	Oldest() (uses uint64, ok bool)
	// Shed gives up the oldest of at least so many bytes, or all there are, and returns how many bytes are free now.
	Shed(bytes int64) (freed int64)
}

// Share lets v give up registrations for others, and others for v. Call it once, before anything is registered.
func (m *Manager) Share(v Victims) { m.victims.Store(&v) }

// Uses is the clock by which idle memory ages: references taken so far.
func (m *Manager) Uses() uint64 { return m.tick() }

// Promise keeps so much of the budget for Lend, instead of what was promised before. It takes no lock of the manager's;
// KeepPromise follows.
func (m *Manager) Promise(bytes int64, regions int) { m.budget.promise(bytes, regions) }

// KeepPromise gives up idle regions until the cache has only what the promise leaves it. What is in use stays, and is given
// up when it is idle and room is needed.
func (m *Manager) KeepPromise() {
	for !m.budget.keepsPromise() && m.evict(nil) {
	}
}

// Lend registers r for somebody else, such as another rank, under this budget. Idle regions and victims are given up for it,
// also where the NIC refuses for want of room; if that does not help the error wraps transport.ErrLimit or what the NIC
// says. Return ends it. The memory must stay as it is until then: it is not pinned.
func (m *Manager) Lend(r mem.Range, a transport.Access) (transport.Region, error) {
	bytes := int64(mem.Pages(r, m.page)) * int64(m.page)
	if !m.Reserve(bytes, 1) {
		limit, regions := m.budget.Limits()
		return transport.Region{}, &lendError{bytes: bytes, limit: limit, regions: regions, policy: m.cfg.Policy, used: m.budget.Usage()}
	}
	for freed := int64(0); ; {
		key, err := m.cfg.Registrar.Register(r, a)
		if err == nil {
			return key, nil
		}
		if isLimit(err) && freed < bytes {
			if more := m.Trim(1); more > 0 {
				freed += more
				continue
			}
		}
		m.Unreserve(bytes, 1)
		return key, err
	}
}

// Return ends what Lend has registered. On an error nobody knows whether the NIC still has it, so it stays charged.
func (m *Manager) Return(key transport.Region, r mem.Range) error {
	if err := m.cfg.Registrar.Deregister(key); err != nil {
		return err
	}
	m.Unreserve(int64(mem.Pages(r, m.page))*int64(m.page), 1)
	return nil
}

// lendError is a loan for which there is no room. Its words are made for who asks: where little may be registered loans are refused often.
type lendError struct {
	bytes, limit int64
	regions      int
	policy       Policy
	used         Usage
}

func (e *lendError) Error() string { return e.Unwrap().Error() }

// Unwrap is the *transport.LimitError that it is.
func (e *lendError) Unwrap() error {
	full := &transport.LimitError{
		What:    fmt.Sprintf("registering %d bytes for another rank", e.bytes),
		Found:   usageText(e.used) + ", " + limitText(e.limit, e.regions),
		Needed:  fmt.Sprintf("%d bytes in 1 registration more", e.bytes),
		Setting: "PGAS_REG_LIMIT and the limit of locked memory (ulimit -l)",
	}
	if e.limit > 0 && e.bytes > e.limit {
		full.Setting = cure(e.policy, errTooLarge, e.bytes)
	}
	return full
}

// Reserve charges the budget for registrations that somebody else makes, and gives idle regions and victims up for it. It
// reports whether there was room.
func (m *Manager) Reserve(bytes int64, regions int) bool {
	limit, most := m.budget.Limits()
	if limit > 0 && bytes > limit || most > 0 && regions > most {
		return false
	}
	for !m.budget.lend(bytes, regions) {
		if !m.yield(false) {
			return false
		}
	}
	return true
}

// Unreserve takes a charge of Reserve back.
func (m *Manager) Unreserve(bytes int64, regions int) { m.budget.unlend(bytes, regions) }

// Trim gives idle regions and victims up, those first that were not used for the longest time, until want bytes are free or
// nothing is idle; it returns how many bytes were freed. Whoever registers with the NIC beside the manager calls it when
// refused.
func (m *Manager) Trim(want int64) (freed int64) {
	for freed < want {
		before := m.counts.freed.Load()
		if !m.yield(false) {
			break
		}
		freed += int64(m.counts.freed.Load() - before)
	}
	return freed
}

// yield gives up what was not used for the longest time: an idle region, or somebody else's victim. Where uses are predicted,
// what nobody is known to need goes first. ahead: for a registration ahead of its use, so only that. It reports whether there
// was something.
func (m *Manager) yield(ahead bool) bool {
	v := m.victims.Load()
	if v == nil {
		return m.spare(ahead)
	}
	age, some := (*v).Oldest()
	if !some {
		return m.spare(ahead)
	}
	if m.evictBefore(age+1, unexpected) {
		return true
	}
	if freed := (*v).Shed(1); freed > 0 {
		m.counts.freed.Add(uint64(freed))
		m.counts.shed.Add(1)
		return true
	}
	return m.spare(ahead)
}

// evictBefore is evict for regions whose last use came before that many uses.
func (m *Manager) evictBefore(age uint64, ok func(*Region) bool) bool {
	m.mu.Lock()
	r := m.idle.oldest(ok, age)
	m.mu.Unlock()
	if r == nil {
		return false
	}
	m.drop(r, &m.counts.evicted)
	return true
}
