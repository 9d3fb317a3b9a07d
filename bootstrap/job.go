package bootstrap

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"gopgas/internal/pmi"
)

// Names that Job.Launcher returns.
const (
	LauncherPgasrun   = "pgasrun"
	LauncherPMI1      = "pmi-1" // Hydra, Slurm's pmi2 plugin, Flux
	LauncherAlone     = "alone"
	LauncherInProcess = "in-process"
)

// Sentinels; match with errors.Is.
var (
	// ErrLauncherGone: the launcher ended before this rank did.
	ErrLauncherGone = pmi.ErrServerGone
	// ErrSpent: Open has failed, and has used up the launcher's descriptor: this process cannot join the job any more.
	ErrSpent = pmi.ErrSpent
	// ErrAborted: a rank of an in-process job called Abort.
	ErrAborted = errors.New("the job was aborted")
	// ErrRankLeft: a rank of an in-process job closed while others still wait for it.
	ErrRankLeft = errors.New("a rank has left the job")
)

// Job is one rank's view of its job. See the package comment for its life; all methods are safe for concurrent use.
type Job interface {
	// Rank is this rank's number, from 0 to Size-1.
	Rank() int
	// Size is the number of ranks, 1 or more.
	Size() int
	// Launcher is one of the Launcher constants.
	Launcher() string
	// Name is the same on all ranks of a job and differs between jobs. It has visible characters only, but whatever the
	// launcher chose: make no file name of it.
	Name() string
	// Exchange gives card to all ranks and returns the cards of all, by rank. Collective; waits for all ranks. The result is
	// the caller's.
	Exchange(ctx context.Context, card []byte) ([][]byte, error)
	// Barrier returns when all ranks have called it. Collective.
	Barrier(ctx context.Context) error
	// Abort asks the launcher to end the whole job with code. It returns nil when the request is on its way, or when there is
	// nobody else to end; the caller then ends its own process.
	Abort(code int, why string) error
	// Close leaves the job in good order. It is the last thing a rank does; a second call does nothing.
	Close() error
}

// Secret returns 32 bytes that the ranks of j share and nobody else knows. Collective, once per job at most. Under
// pgasrun they come from the launcher; elsewhere rank 0 makes them and hands them on through the launcher. They
// never stand in an environment or on a command line.
func Secret(ctx context.Context, j Job) ([]byte, error) {
	if p, ok := j.(*pmiJob); ok && p.launcher == LauncherPgasrun {
		text, err := p.client.Get(ctx, pmi.SecretKey)
		if err != nil {
			return nil, fmt.Errorf("the job's secret: %w", err)
		}
		secret, err := hex.DecodeString(text)
		if err != nil || len(secret) != pmi.SecretSize {
			return nil, fmt.Errorf("the job's secret: %d characters from the launcher, wanted %d hexadecimal ones", len(text), 2*pmi.SecretSize)
		}
		return secret, nil
	}
	var card []byte
	if j.Rank() == 0 {
		card = make([]byte, pmi.SecretSize)
		rand.Read(card) // never fails
	}
	cards, err := j.Exchange(ctx, card)
	if err != nil {
		return nil, fmt.Errorf("the job's secret: %w", err)
	}
	if len(cards[0]) != pmi.SecretSize {
		return nil, fmt.Errorf("the job's secret: %d bytes from rank 0, wanted %d: do all ranks call Secret here?", len(cards[0]), pmi.SecretSize)
	}
	return cards[0], nil
}

// alone is the job of a single process that nobody launched.
type alone struct{ name string }

func newAlone() Job {
	var id [8]byte
	rand.Read(id[:])
	return alone{"alone-" + hex.EncodeToString(id[:])}
}

func (alone) Rank() int                         { return 0 }
func (alone) Size() int                         { return 1 }
func (alone) Launcher() string                  { return LauncherAlone }
func (a alone) Name() string                    { return a.name }
func (alone) Barrier(ctx context.Context) error { return context.Cause(ctx) }
func (alone) Abort(int, string) error           { return nil }
func (alone) Close() error                      { return nil }

func (alone) Exchange(ctx context.Context, card []byte) ([][]byte, error) {
	return [][]byte{append([]byte{}, card...)}, context.Cause(ctx)
}
