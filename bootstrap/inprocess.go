package bootstrap

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
)

// meeting is what the ranks of an in-process job share.
type meeting struct {
	name string
	size int

	mu    sync.Mutex // guards what follows; never held while waiting
	round *round     // the one now gathering
	dead  error      // why no round can complete any more
	left  []bool     // ranks that closed
}

// round is one Exchange of all ranks. A Barrier is an Exchange of nothing.
type round struct {
	cards   [][]byte
	arrived int
	here    []bool
	done    chan struct{} // closed when all arrived or none ever will; cards and err are fixed then
	err     error
}

type member struct {
	m    *meeting
	rank int

	turn   chan struct{} // holds one token: collective calls of one rank queue here
	broken error         // B1; guarded by the token
}

// InProcess returns the jobs of n ranks that are goroutines of this process, by rank. It panics for n below 1, which is a
// bug of the caller.
func InProcess(n int) []Job {
	if n < 1 {
		// bug: the caller made up the number; no input decides it
		panic(fmt.Sprintf("bootstrap.InProcess(%d): wanted 1 or more", n))
	}
	var id [8]byte
	rand.Read(id[:])
	m := &meeting{name: "in-process-" + hex.EncodeToString(id[:]), size: n, left: make([]bool, n)}
	m.round = m.newRound()
	jobs := make([]Job, n)
	for r := range jobs {
		mb := &member{m: m, rank: r, turn: make(chan struct{}, 1)}
		mb.turn <- struct{}{}
		jobs[r] = mb
	}
	return jobs
}

func (m *meeting) newRound() *round {
	return &round{cards: make([][]byte, m.size), here: make([]bool, m.size), done: make(chan struct{})}
}

// enter adds a rank's card to the round that gathers and returns it.
func (m *meeting) enter(rank int, card []byte) (*round, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead != nil {
		return nil, m.dead
	}
	r := m.round
	r.cards[rank] = append([]byte{}, card...)
	r.here[rank] = true
	r.arrived++
	if r.arrived == m.size {
		close(r.done)
		m.round = m.newRound()
		return r, nil
	}
	for other, left := range m.left {
		if left {
			m.endLocked(fmt.Errorf("rank %d: %w", other, ErrRankLeft))
			return nil, m.dead
		}
	}
	return r, nil
}

// endLocked lets no round complete any more.
func (m *meeting) endLocked(why error) {
	if m.dead == nil {
		m.dead = why
		m.round.err = why
		close(m.round.done)
	}
}

func (b *member) Rank() int        { return b.rank }
func (b *member) Size() int        { return b.m.size }
func (b *member) Launcher() string { return LauncherInProcess }
func (b *member) Name() string     { return b.m.name }

func (b *member) Barrier(ctx context.Context) error {
	_, err := b.meet(ctx, nil)
	if err != nil {
		return fmt.Errorf("barrier of the job: %w", err)
	}
	return nil
}

func (b *member) Exchange(ctx context.Context, card []byte) ([][]byte, error) {
	cards, err := b.meet(ctx, card)
	if err != nil {
		return nil, fmt.Errorf("exchange cards: %w", err)
	}
	return cards, nil
}

func (b *member) meet(ctx context.Context, card []byte) ([][]byte, error) {
	select {
	case <-b.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { b.turn <- struct{}{} }()
	if b.broken != nil {
		return nil, fmt.Errorf("this rank gave up a collective call before: %w", b.broken)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r, err := b.m.enter(b.rank, card)
	if err != nil {
		return nil, err
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		b.broken = context.Cause(ctx)
		return nil, b.broken
	}
	if r.err != nil {
		return nil, r.err
	}
	cards := make([][]byte, len(r.cards))
	for i, c := range r.cards {
		cards[i] = append([]byte{}, c...)
	}
	return cards, nil
}

// Abort lets every waiting and later collective call of all ranks fail; goroutines cannot be ended from outside.
func (b *member) Abort(code int, why string) error {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	b.m.endLocked(fmt.Errorf("rank %d with code %d (%s): %w", b.rank, code, why, ErrAborted))
	return nil
}

func (b *member) Close() error {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	b.m.left[b.rank] = true
	if b.m.dead == nil && b.m.round.arrived > 0 && !b.m.round.here[b.rank] {
		b.m.endLocked(fmt.Errorf("rank %d: %w", b.rank, ErrRankLeft))
	}
	return nil
}
