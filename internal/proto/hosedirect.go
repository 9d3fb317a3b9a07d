package proto

import (
	"context"
	"errors"

	"gopgas/internal/mem"
	"gopgas/regmgr"
	"gopgas/transport"
)

// hosedStart begins a transfer between the user's memory and buckets without a copy: the memory is registered once, for all
// its parts, and each part has a firehose. The error wraps regmgr.ErrCopy where the memory cannot be registered; nothing
// has begun then. Where a bucket is refused the rest goes as what is not registered does, and is done on return.
func (n *device) hosedStart(t *journey, off int, user mem.Range) (Handle, error) {
	if err := n.reach(t.name, t.r, off, user.Bytes); err != nil {
		return Handle{}, err
	}
	var ask asked
	defer ask.drop(t.name)
	if covered, _ := n.direct.reg.Known(user, t.rights()); !covered {
		// What has to be registered first is registered while buckets are asked for.
		if err := n.connected(t.name, t.r, off, user.Bytes); err != nil {
			return Handle{}, err
		}
		if _, err := ask.more(n, t.name, t.r, off, user.Bytes, false); err != nil {
			return Handle{}, err
		}
	}
	var all regmgr.Hold // keeps the registration until the last part has its own reference
	if err := n.direct.reg.Acquire(&all, regmgr.Request{Mem: user, Access: t.rights()}); err != nil {
		if !errors.Is(err, regmgr.ErrCopy) {
			err = transport.NewOpError(t.name, t.r.Rank, err)
		}
		return Handle{}, err
	}
	if h, hit, err := n.hosedStartHit(*t, off, user, &all); hit {
		return h, err
	}
	err := n.connected(t.name, t.r, off, user.Bytes)
	var h Handle
	if err == nil {
		h, err = n.beginAsking(t, &ask)
	}
	if err != nil {
		n.direct.reg.Release(&all)
		return Handle{}, err
	}
	done, direct := 0, true
	for done < user.Bytes && direct && err == nil {
		left := user.Slice(done, user.Bytes-done)
		if _, err = ask.more(n, t.name, t.r, off+done, left.Bytes, true); err != nil {
			break
		}
		var bytes int
		bytes, direct, err = n.hosedStartPart(*t, h, &all, off+done, left)
		done, ask.left = done+bytes, ask.left-bytes
	}
	if all.Region() != nil {
		n.direct.reg.Release(&all)
	}
	if done > 0 {
		n.e.counts.add(t.path, t.r.Rank, done)
	}
	n.PartDone(h, nil)
	if err == nil && direct {
		return h, nil
	}
	// What has been posted is on its way: the user's memory is not his before it has arrived.
	if werr := h.Wait(context.Background()); err == nil {
		err = werr
	}
	if err == nil {
		err = n.copied(t, off-t.off+done, user.Slice(done, user.Bytes-done))
	}
	return Handle{}, err
}

// beginAsking opens a transfer for who has asked for buckets. If he has to wait he lets go of them first: those who have transfers may wait for buckets.
func (n *device) beginAsking(t *journey, ask *asked) (Handle, error) {
	if h, ok := n.TryBegin(t.name, t.r.Rank); ok {
		return h, nil
	}
	ask.drop(t.name)
	return n.Begin(t.name, t.r.Rank)
}

// hosedStartPart posts the first of left's bytes, as many as one bucket and one operation carry, and returns how many. If
// direct is false, or on an error, it has posted none. all becomes the part's if that is the last one.
func (n *device) hosedStartPart(t journey, h Handle, all *regmgr.Hold, off int, left mem.Range) (bytes int, direct bool, err error) {
	addr := t.r.raddr + uint64(off)
	bytes, err = n.hoses.Cut(t.r.hosed, addr, left.Bytes, n.Caps.MaxMessage)
	if err != nil {
		return 0, false, transport.NewOpError(t.name, t.r.Rank, err)
	}
	id, err := n.Acquire(t.name, t.r.Rank, false)
	if err != nil {
		return 0, false, err
	}
	key, direct, _, err := n.hoses.Attach(t.name, id, t.r.hosed, addr, bytes, nil, t.kind == transport.OpRead)
	if direct {
		n.Tie(id)
	}
	if err != nil || !direct {
		n.Abandon(id)
		return 0, false, err
	}
	part := mem.Hidden(left.Slice(0, bytes)) // it is registered, so it is on no stack
	var hold regmgr.Hold
	if bytes == left.Bytes {
		hold, *all = *all, regmgr.Hold{}
	} else if err = n.direct.reg.Acquire(&hold, regmgr.Request{Mem: part, Access: t.rights(), Of: all}); err != nil {
		n.Abandon(id)
		return 0, false, transport.NewOpError(t.name, t.r.Rank, err)
	}
	if err = n.postHeld(t, h, id, hold, part, off, key); err != nil {
		return 0, false, err
	}
	return bytes, true, nil
}
