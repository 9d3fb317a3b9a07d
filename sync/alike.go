package pgsync

import (
	"context"
	"fmt"
	"strings"

	"gopgas/transport"
)

// Alike verifies, before members make something together, that all make the same: mine says in words what this one makes. Collective.
// refusal is why this member cannot, or nil: it gets that back, and the others an error too, at once, so that the team stays whole. Members that
// differ all get ErrMismatch with the words of both. It is for the layers above; op is what their callers have called. It allocates.
func (t *Team) Alike(ctx context.Context, op, mine string, refusal error) error {
	const mark = "makes: " // what members exchange that do something else does not begin so
	if refusal != nil {
		mine = "nothing, since its arguments cannot be; its own error says why"
	}
	all, err := t.Exchange(ctx, []byte(mark+mine))
	if err == nil {
		err = refusal
	}
	if err != nil {
		return transport.NewOpError(op, -1, err)
	}
	for m, card := range all {
		theirs, ok := strings.CutPrefix(string(card), mark)
		if !ok {
			theirs = "something else"
		}
		if theirs != mine {
			return transport.NewOpError(op, t.WorldRank(m), fmt.Errorf("%w: this rank makes %s, rank %d %s", ErrMismatch, mine, t.WorldRank(m), theirs))
		}
	}
	return nil
}
