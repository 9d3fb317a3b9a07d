package bootstrap

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gopgas/internal/pmi"
	"gopgas/transport"
)

// headRoom is what the first chunk of a card needs for the number of chunks and its separator.
const headRoom = 10

// pmiJob is a job whose launcher speaks PMI-1.
type pmiJob struct {
	client   *pmi.Client
	launcher string

	turn       chan struct{} // one token, held over a whole exchange so that generations do not mix
	generation uint64        // guarded by the token
	broken     error         // B1: an exchange that this rank has begun and not come to the barrier of; likewise
}

func newPMIJob(c *pmi.Client, envJob string) *pmiJob {
	j := &pmiJob{client: c, launcher: LauncherPMI1, turn: make(chan struct{}, 1)}
	j.turn <- struct{}{}
	if envJob != "" && envJob == c.KVSName() { // else the variable is left over from an outer pgasrun
		j.launcher = LauncherPgasrun
	}
	return j
}

func (j *pmiJob) Rank() int        { return j.client.Rank() }
func (j *pmiJob) Size() int        { return j.client.Size() }
func (j *pmiJob) Launcher() string { return j.launcher }
func (j *pmiJob) Name() string     { return j.client.KVSName() }

func (j *pmiJob) Barrier(ctx context.Context) error {
	if err := j.take(ctx); err != nil {
		return err
	}
	defer j.give()
	return named(j.client.Barrier(ctx))
}

// named makes of the launcher's word that a rank will not come the error that any call makes of a lost rank.
func named(err error) error {
	if gone := (*pmi.GoneError)(nil); errors.As(err, &gone) {
		return transport.NewOpError("wait for all ranks", gone.Rank, fmt.Errorf("%w: %w", transport.ErrPeerGone, gone))
	}
	return err
}

func (j *pmiJob) Exchange(ctx context.Context, card []byte) ([][]byte, error) {
	if err := j.take(ctx); err != nil {
		return nil, err
	}
	defer j.give()
	generation := j.generation
	j.generation++
	for i, value := range chunks(card, pmi.PortableValue) {
		if err := j.client.Put(ctx, cardKey(generation, j.Rank(), i), value); err != nil {
			j.broken = err // the others are in another generation from here on
			return nil, fmt.Errorf("exchange cards: %w", err)
		}
	}
	if err := named(j.client.Barrier(ctx)); err != nil {
		if !errors.Is(err, transport.ErrPeerGone) { // which the launcher says to all, now and later
			j.broken = err // it may not have been asked: the others still wait in this generation
		}
		return nil, fmt.Errorf("exchange cards: %w", err)
	}
	cards := make([][]byte, j.Size())
	for rank := range cards {
		if rank == j.Rank() {
			cards[rank] = append([]byte{}, card...)
			continue
		}
		var err error
		cards[rank], err = collect(func(chunk int) (string, error) {
			return j.client.Get(ctx, cardKey(generation, rank, chunk))
		})
		if err != nil {
			return nil, fmt.Errorf("exchange cards: that of rank %d: %w", rank, err)
		}
	}
	return cards, nil
}

// take waits for this rank's turn in a collective call; give ends it. A context that has ended begins nothing.
func (j *pmiJob) take(ctx context.Context) error {
	select {
	case <-j.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := j.broken
	switch {
	case err != nil:
		err = fmt.Errorf("this rank gave up an exchange before: %w", err)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	default:
		return nil
	}
	j.give()
	return err
}

func (j *pmiJob) give() { j.turn <- struct{}{} }

func (j *pmiJob) Abort(code int, why string) error {
	if j.launcher != LauncherPgasrun {
		why = "" // not part of the protocol's text
	}
	return j.client.Abort(code, why)
}

func (j *pmiJob) Close() error {
	return j.client.Finalize()
}

func cardKey(generation uint64, rank, chunk int) string {
	return fmt.Sprintf("pgas-%d-%d-%d", generation, rank, chunk)
}

// chunks cuts a card into values of at most limit bytes that any launcher keeps whole: base64, never empty. The first
// starts with the number of chunks and a comma.
func chunks(card []byte, limit int) []string {
	text := base64.RawStdEncoding.EncodeToString(card)
	first := min(len(text), limit-headRoom)
	out := []string{""}
	for rest := text[first:]; rest != ""; {
		n := min(len(rest), limit)
		out = append(out, rest[:n])
		rest = rest[n:]
	}
	out[0] = strconv.Itoa(len(out)) + "," + text[:first]
	return out
}

// collect is the inverse of chunks; get returns the chunk of a number. What it returns comes from a peer and is checked.
func collect(get func(chunk int) (string, error)) ([]byte, error) {
	head, err := get(0)
	if err != nil {
		return nil, err
	}
	count, first, ok := strings.Cut(head, ",")
	n, err := strconv.Atoi(count)
	if !ok || err != nil || n < 1 {
		return nil, fmt.Errorf("a card that starts with %.20q, wanted its number of chunks", head)
	}
	var text strings.Builder
	text.WriteString(first)
	for i := 1; i < n; i++ {
		part, err := get(i)
		if err != nil {
			return nil, err
		}
		text.WriteString(part)
	}
	card, err := base64.RawStdEncoding.DecodeString(text.String())
	if err != nil {
		return nil, fmt.Errorf("a card of %d chunks: %w", n, err)
	}
	return card, nil
}
