package regmgr

import (
	"errors"
	"fmt"
	"math"
	"syscall"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// isLimit reports whether err of a registration says that there is too much registered, so that less would help.
func isLimit(err error) bool {
	return errors.Is(err, transport.ErrLimit) || errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EAGAIN) ||
		errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EPERM)
}

// ceiling remembers what the NIC refused, so that not every transfer at a limit lower than the budget asks the NIC again.
// The limit may rise again, so every probeEvery'th request that it stops, or has others given up, asks anyway. Guarded by Manager.mu.
type ceiling struct {
	bytes   int64 // the NIC refused to have so many registered at once; 0: it refused nothing
	stopped int
}

const probeEvery = 64

// allows reports whether the NIC may be asked for so many bytes more than the used ones.
func (c ceiling) allows(used, bytes int64) bool { return c.bytes == 0 || used+bytes < c.bytes }

// stop counts a request that the ceiling stands in the way of, and lifts it from time to time.
func (c ceiling) stop() ceiling {
	if c.stopped++; c.stopped >= probeEvery {
		return ceiling{}
	}
	return c
}

// belowCeiling gives idle regions up until the NIC may be asked for so many bytes more; it reports whether it may.
func (m *Manager) belowCeiling(bytes int64, ahead bool) bool {
	for stopped := false; ; stopped = true {
		seen := m.stirred.Load()
		used := m.budget.Usage().Bytes
		m.mu.Lock()
		c := m.ceiling
		allowed := c.allows(used, bytes)
		if !allowed && !stopped { // once for each request, and also where giving others up helps: else it would never be lifted there
			m.ceiling = c.stop()
		}
		m.mu.Unlock()
		if allowed {
			return true
		}
		if !c.allows(0, bytes) || !m.cfg.Policy.evicts() || !m.yield(ahead) && !m.awaitRoom(ahead, seen) {
			return false
		}
	}
}

// refusedNow notes that the NIC would not have registered as much as is charged now, the region that it has just refused being part of that.
func (m *Manager) refusedNow() {
	bytes := m.budget.Usage().Bytes
	m.mu.Lock()
	m.ceiling.bytes = bytes
	m.mu.Unlock()
}

// noRoom is the outcome of a registration of r that cannot be had because of why: an error to act on under the policy that
// never copies, else ErrCopy. The first one is kept for the report. Nobody copies because of a registration ahead of its use,
// and that there is no room for one is no news; any other reason is.
func (m *Manager) noRoom(r *Region, why error, ahead bool) error {
	u := m.budget.Usage()
	needed := int64(r.pages) * int64(m.page)
	m.mu.Lock()
	if isLimit(why) {
		m.ceiling.bytes = u.Bytes + needed
	}
	known := m.refusal != nil
	m.mu.Unlock()
	if ahead && (isLimit(why) || why == errBudgetFull || why == errCeiling) {
		return errCopyBudget
	}
	if ahead && why == errTooLarge {
		return errCopyOnce
	}
	if ahead && known {
		return errCopyRefused
	}
	copied, count := errCopyRefused, &m.counts.copyRefused
	switch why {
	case errBudgetFull:
		copied, count = errCopyBudget, &m.counts.copyBudget
	case errTooLarge:
		copied, count = errCopyLarge, &m.counts.copyBudget
	}
	if known && m.cfg.Policy.evicts() {
		count.Add(1)
		return copied
	}
	limit, regions := m.budget.Limits()
	full := &transport.LimitError{
		What:    fmt.Sprintf("registering %d bytes of %s memory", r.mem.Bytes, r.origin),
		Found:   usageText(u) + ", " + limitText(limit, regions) + keptText(u),
		Needed:  fmt.Sprintf("%d bytes in 1 registration more", needed),
		Setting: cure(m.cfg.Policy, why, limitFor(needed, limit, u.Promised)), Err: why,
	}
	m.mu.Lock()
	if m.refusal == nil {
		m.refusal = full
	}
	m.mu.Unlock()
	if !m.cfg.Policy.evicts() {
		return fmt.Errorf("%w: %w", ErrBudget, full)
	}
	if !ahead {
		count.Add(1)
	}
	return &copyError{"", full}
}

// usageText says how much is registered, and for whom.
func usageText(u Usage) string {
	s := fmt.Sprintf("%d bytes in %d registrations in use", u.Bytes, u.Regions)
	if u.Lent > 0 {
		s += fmt.Sprintf(" (%d bytes of them for other ranks)", u.Lent)
	}
	return s
}

// keptText says how much of the limit the cache cannot have, which follows the limit's text.
func keptText(u Usage) string {
	if u.Promised == 0 {
		return ""
	}
	return fmt.Sprintf(", %d bytes of it kept for other ranks", u.Promised)
}

// limitFor returns the limit under which the cache may have so many bytes. What is promised is a fixed part of any limit.
func limitFor(needed, limit, promised int64) int64 {
	own := limit - promised
	if promised == 0 || own <= 0 {
		return needed + promised
	}
	return int64(math.Ceil(float64(needed) * (float64(limit) / float64(own))))
}

// limitText says how much may be registered at once; 0: as much as one likes.
func limitText(bytes int64, regions int) string {
	switch {
	case bytes == 0 && regions == 0:
		return "no limit"
	case regions == 0:
		return fmt.Sprintf("limit %d bytes", bytes)
	case bytes == 0:
		return fmt.Sprintf("limit %d registrations", regions)
	}
	return fmt.Sprintf("limit %d bytes in %d registrations", bytes, regions)
}

// cure says what helps against a refusal because of why. What is too large by itself is helped by a limit of so many bytes, and not by
// giving others up.
func cure(p Policy, why error, enough int64) string {
	if why == errTooLarge {
		return fmt.Sprintf("where they are set, PGAS_REG_LIMIT and PGAS_MAX_PINNED (%d bytes or more) and ulimit -l (%d KiB or more), "+
			"beside what the library's own buffers take", enough, (enough+1023)/1024)
	}
	s := "PGAS_REG_LIMIT and the limit of locked memory (ulimit -l)"
	if p != LeavePinned {
		s += ", or PGAS_REG=leavepinned, which gives up what is not in use and copies where that does not help"
	}
	return s
}

// copyError is an ErrCopy with its reason.
type copyError struct {
	why   string
	cause error
}

func (e *copyError) Error() string {
	if e.cause == nil {
		return ErrCopy.Error() + ": " + e.why
	}
	return ErrCopy.Error() + ": " + e.cause.Error()
}

// Unwrap lets errors.Is find ErrCopy and the cause.
func (e *copyError) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrCopy}
	}
	return []error{ErrCopy, e.cause}
}

// Made once: transfers that are copied come often.
var (
	errCopyPolicy  error = &copyError{why: "the policy is bounce"}
	errCopyOrigin  error = &copyError{why: "the memory may lie on a goroutine's stack"}
	errCopyBudget  error = &copyError{why: "the budget is full of memory in use"}
	errCopyRefused error = &copyError{why: "the NIC has refused to register as much"}
	errCopyLarge   error = &copyError{why: "it alone exceeds the limit"}
	errCopyOnce    error = &copyError{why: "the memory may be registered for one use only"}
)

// writable reports whether r can be written, without writing.
func writable(r mem.Range, page int) bool { return probeWrite(mem.Around(r, r, page), page) }
