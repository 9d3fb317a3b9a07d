package prices

import (
	"sync"
	"sync/atomic"
	"time"

	"gopgas/eager"
	"gopgas/internal/callsite"
	"gopgas/internal/mem"
	"gopgas/internal/selector"
)

// Habits is what has been seen of how the program uses its buffers, and of the flushes behind its puts. The zero Habits has
// seen nothing, and predicts nothing before Begin. Any goroutine may use it at any time; nothing in it waits or allocates.
type Habits struct {
	Names *mem.Names // of buffers; nil: their addresses

	awaiting atomic.Bool      // the last operation was a put that the chooser knows
	begun    atomic.Bool      // Begin was called
	repeats  [repeats]granted // how puts that a flush follows go on, by size
	slotted  [2]slotted       // transfers for which somebody waits, puts and gets, whose buffers are not frequent
	onward   onward           // how puts that none follows go on
	passing  [2]passing       // large transfers, puts and gets, whose memory is used once
	mu       sync.Mutex
	chooser  *eager.Chooser                // nil: the costs are not measured yet, or nothing small is worth it
	quick    atomic.Pointer[eager.Chooser] // the same, for who does not hold mu
	sites    eager.Sites                   // of large puts, where there is no chooser
	run      Run
	last     like // put that was asked about and that no flush is thought to follow
	once     like // puts that a flush follows, of buffers that are not frequent

	past atomic.Uint64 // small transfers of registered memory that nobody was asked about
}

// like is what puts have in common that travel alike.
type like struct {
	site  uint64
	bytes int
}

// Run is puts of one kind to one rank that no flush has followed yet. A put that returns early costs its flush the more, so what
// is noted is the time of all of them and of the flush, by their number. The zero Run is none.
type Run struct {
	noted *selector.Learned // where its price is
	trial selector.Trial
	rank  int
	puts  int
	timed int           // of them, those that were asked about: the others, each like one of these, are not worth looking at the clock for
	took  time.Duration // by the timed ones
	mixed bool          // others came before that are not over either
}

// longestRun is after how many puts a run is noted without a flush: by then they wait for each other.
const longestRun = 256

// Wanted reports whether Flushed is to be called when the flush that ends the run is over.
func (r *Run) Wanted() bool { return r.trial.Wanted() && !r.mixed }

// Flushed notes what the puts of a run and the flush behind them, which took so long, have cost.
func (r *Run) Flushed(took time.Duration) {
	r.noted.Note(r.trial, r.each()+took.Seconds()/float64(r.puts))
}

// each is how long a put of the run has taken, in seconds, without the flush.
func (r *Run) each() float64 { return r.took.Seconds() / float64(r.timed) }

// Again reports whether a put to rank, of whose kind l is learned, is to travel like the run that it follows, as what trial, and how.
func (r *Run) Again(l *selector.Learned, rank int, q selector.Query) (p selector.Protocol, t selector.Trial, again bool) {
	if r.puts == 0 || r.rank != rank || r.noted != l {
		return p, t, false
	}
	if p, again = r.trial.Again(q); !again {
		return p, t, false
	}
	t = r.trial
	if p == selector.Register {
		t = t.Quiet()
	}
	return p, t, true
}

// Begin begins to predict, by what c knows of the costs; nil says that nothing small is worth it, or known: then only flushes are
// predicted.
func (h *Habits) Begin(c *eager.Chooser) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.chooser = c
	h.quick.Store(c)
	h.begun.Store(true)
}

// Begun reports whether Begin was called: before that nothing of what puts cost is noted.
func (h *Habits) Begun() bool { return h.begun.Load() }

// Put notes a put that is over, for when its flush is. l is where its price goes, t its trial, and took how long it took if that was
// asked for. Where that ends a short trial Put returns the run: if it is Wanted the caller waits for the
// puts, and calls Flushed.
func (h *Habits) Put(l *selector.Learned, t selector.Trial, rank int, took time.Duration) (ended Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.begun.Load() {
		return ended // flushes are not looked at yet
	}
	h.gatherLocked()
	if !h.run.trial.Alike(t) || h.run.rank != rank || h.run.noted != l || h.run.puts == 0 {
		before := h.endRun()
		h.run = Run{noted: l, trial: t, rank: rank, mixed: before.puts > 0}
	}
	if !t.Wanted() {
		h.run.trial = t // not all of it was timed
	}
	h.run.puts++
	h.run.timed++
	h.run.took += took
	switch {
	case t.Short() && h.run.puts == selector.ShortTrial:
		return h.endRun()
	case h.run.puts == longestRun:
		if r := h.endRun(); r.Wanted() {
			l.Note(t, r.each())
		}
	default:
		h.runOnLocked()
	}
	return ended
}

// endRun forgets the run, and returns it.
func (h *Habits) endRun() (r Run) {
	r, h.run = h.run, Run{}
	if r.puts > 1 {
		r.noted.Made(r.trial, r.puts-1)
	}
	return r
}

// Bypasses counts a use of memory by a small transfer, and reports whether that is to go past the slots. waited says that
// somebody waits for its end anyway. skip counts the frames above the caller that all puts have in common.
func (h *Habits) Bypasses(get, waited bool, user mem.Range, skip int) bool {
	if c := h.quick.Load(); c != nil && c.Refused(get, h.Names.Of(user), user.Bytes) {
		h.Other() // a program whose buffers are used once comes here each time; the lock would be half of what it pays
		return false
	}
	seldom := (get || waited) && user.Bytes >= AskedFrom
	if seldom && h.slotted[side(get)].again(user.Bytes) {
		h.Other()
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.chooser
	if c == nil {
		return false // somebody measures
	}
	var choice eager.Choice
	switch {
	case seldom:
		choice = h.seldomLocked(get, user)
	case get:
		choice = c.Get(h.Names.Of(user), user.Bytes, false)
	default:
		frequent, site := c.Used(false, h.Names.Of(user), user.Bytes), uint64(0)
		if frequent && !waited { // else the call site does not matter
			var stack callsite.Stack
			callsite.Here(&stack, skip+1)
			site = stack.Hash()
		}
		choice = c.PutOf(frequent, user.Bytes, site, waited, false)
	}
	h.await(c.Awaiting() || h.run.puts > 0)
	return choice == eager.Bypass
}

// seldomLocked is what the chooser says of a transfer that somebody waits for, of a size of which it is told seldom: where its buffer is not frequent most of
// those of as many bytes behind it go through slots unasked.
func (h *Habits) seldomLocked(get bool, user mem.Range) eager.Choice {
	c, slotted := h.chooser, &h.slotted[side(get)]
	frequent := c.UsedOf(slotted.of(user.Bytes), get, h.Names.Of(user), user.Bytes)
	slotted.next(user.Bytes, frequent)
	if get {
		return c.GetOf(frequent, user.Bytes, false)
	}
	return c.PutOf(frequent, user.Bytes, 0, true, false)
}

// Gathers is Bypasses for the payload of a message, whose answer somebody waits for if waited: it is not to be copied.
func (h *Habits) Gathers(waited bool, user mem.Range, skip int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.chooser
	if c == nil {
		return false
	}
	frequent, site := c.UsedSent(h.Names.Of(user), user.Bytes), uint64(0)
	if frequent && !waited {
		var stack callsite.Stack
		callsite.Here(&stack, skip+1)
		site = stack.Hash()
	}
	choice := c.SendOf(frequent, user.Bytes, site, waited)
	h.await(c.Awaiting() || h.run.puts > 0)
	return choice == eager.Bypass
}

// await notes whether a flush would be news.
func (h *Habits) await(flush bool) {
	if h.awaiting.Load() != flush { // a store costs more than a look
		h.awaiting.Store(flush)
	}
}

// FlushFollows predicts whether a flush follows a put of so many bytes for which nobody waits, by its call site: any number that tells those
// apart. It also returns the run of puts that the last one belongs to; slotted says that its like went through slots, waited for, and that this one
// may do so unasked.
func (h *Habits) FlushFollows(site uint64, bytes int) (flushed, slotted bool, r Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gatherLocked()
	switch {
	case h.chooser != nil:
		flushed = h.chooser.Large(site)
		h.await(true)
	case h.begun.Load():
		flushed = h.sites.Put(site)
		h.await(true)
	}
	h.last = like{}
	switch {
	case !flushed:
		h.last = like{site, bytes}
	case h.once == like{site, bytes}:
		slotted = h.GoneOn(selector.Bounce, bytes)
	}
	return flushed, slotted, h.run
}

// Alike reports whether a put that fits into a slot travels as the one before it did, and how: that went to the same rank, from the
// same call site, with as many bytes, and has not been flushed either. It is one of its run then. A slot takes any memory, so nothing has to be known of it, and what
// is registered is there to be used; and out of the cold asking about a buffer costs a good part of such a put. If so it is noted as FlushFollows and Put do.
func (h *Habits) Alike(l *selector.Learned, rank int, site uint64, bytes int, registered bool) (p selector.Protocol, alike bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gatherLocked()
	if h.last != (like{site, bytes}) {
		return p, false
	}
	if p, alike = h.run.alike(l, rank, registered); !alike {
		return p, false
	}
	h.run.puts++
	if h.chooser != nil {
		h.chooser.Large(site)
	} else {
		h.sites.Put(site)
	}
	h.await(true)
	return p, true
}

// alike reports whether a put to rank, of whose kind l is learned, may travel unasked since those of the run do, and how: through a slot, or from where
// it lies, which must be registered.
func (r *Run) alike(l *selector.Learned, rank int, registered bool) (selector.Protocol, bool) {
	p, left := r.goesOn()
	if left <= 0 || r.rank != rank || r.noted != l || p == selector.Direct && !registered {
		return selector.None, false
	}
	return p, true
}

// Pays reports whether small transfers of so many bytes for whose end somebody waits are better made from, or into, memory that is registered
// than through a slot. It takes no lock.
func (h *Habits) Pays(get bool, bytes int) bool {
	c := h.quick.Load()
	return c != nil && c.Pays(get, bytes) // else somebody measures
}

// Past notes a small transfer that is no put whose flush would be news, of memory that was known to be registered, so that nobody was asked about it.
func (h *Habits) Past() {
	h.Other()
	h.past.Add(1)
}

// Frequent counts a use of memory by a put whose completion is waited for, and reports whether it is to go past the slots. Where it is not, those that
// follow from the same call site, with as many bytes, go through slots unasked but for one in AskedOf, whose use counts for them: out of the cold to
// count a use is a tenth of what 32 KiB take.
func (h *Habits) Frequent(site uint64, user mem.Range) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.chooser == nil {
		return false
	}
	of, this := 1, like{site, user.Bytes}
	if h.once == this {
		of = AskedOf
	}
	if h.chooser.UsedOf(of, false, h.Names.Of(user), user.Bytes) {
		return true
	}
	h.once = this
	h.GoOn(selector.Bounce, user.Bytes)
	return false
}

// Flush notes a flush of a rank: a put that it follows at once was one to wait for. It returns the run that ends.
func (h *Habits) Flush(rank int) (r Run) {
	if !h.awaiting.Load() {
		return r
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gatherLocked()
	if h.chooser != nil {
		h.chooser.Flushed()
	} else {
		h.sites.Flushed()
	}
	if h.run.rank == rank {
		r = h.endRun()
	}
	h.awaiting.Store(h.run.puts > 0)
	return r
}

// Awaiting reports whether a flush, or another operation, is news. It is asked often.
func (h *Habits) Awaiting() bool { return h.awaiting.Load() }

// Unasked notes a transfer that is to go direct without being asked about, as Other does, and reports whether it may: a put to a rank does as the run
// there that is by another way, since it would wait for that one's puts, which nobody would reckon to them. A put that FlushFollows was told of is
// noted already: of that the flush behind it is news.
func (h *Habits) Unasked(put bool, rank int, told bool) bool {
	if !h.awaiting.Load() {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gatherLocked()
	if put && h.run.puts > 0 && h.run.rank == rank && !h.run.trial.By(selector.Direct) {
		return false
	}
	if !told {
		h.otherLocked()
	}
	return true
}

// Other notes an operation that is none of those that are asked about.
func (h *Habits) Other() {
	if h.awaiting.Load() {
		h.other()
	}
}

func (h *Habits) other() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.otherLocked()
}

func (h *Habits) otherLocked() {
	h.gatherLocked()
	h.elsewhereLocked()
	h.awaiting.Store(h.run.puts > 0)
}

// Stats returns what the usage table of small buffers has seen, and what was chosen; ok is false where nothing has been
// asked.
func (h *Habits) Stats() (s eager.Stats, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.chooser == nil {
		return s, false
	}
	s = h.chooser.Stats()
	s.Bypass += h.past.Load()
	return s, true
}
