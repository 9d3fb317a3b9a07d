package model

import (
	"bytes"
	"context"
	"fmt"

	"gopgas/window"
)

// mover is a rank that makes moves.
type mover struct {
	win  *window.Window[byte]
	base int      // of its lane
	want [][]byte // its lanes, by target
	kept [kept][]byte
	open []opened
}

// opened is a transfer that was begun and not waited for.
type opened struct {
	h    window.Handle
	get  bool
	ends func() error
}

// beside are the bytes around the memory of a get, margin at either end, that must stay.
var beside = bytes.Repeat([]byte{0xa5}, margin)

const margin = 64

// settle waits for what was begun.
func (m *mover) settle(ctx context.Context) error {
	for _, o := range m.open {
		if err := o.h.Wait(ctx); err != nil {
			return err
		}
		if err := o.ends(); err != nil {
			return err
		}
	}
	m.open = m.open[:0]
	return nil
}

func (m *mover) move(ctx context.Context, v move) error {
	getting := len(m.open) > 0 && m.open[len(m.open)-1].get
	if v.buffer >= 0 || v.puts() == getting { // what is being read must not change, nor what is being used
		if err := m.settle(ctx); err != nil {
			return err
		}
	}
	all := make([]byte, v.bytes()+v.shift+2*margin)
	if v.buffer >= 0 {
		all = m.kept[v.buffer][:len(all)]
	}
	buf := all[margin+v.shift:][:v.bytes()]
	copy(all[v.shift:], beside)
	copy(all[margin+v.shift+len(buf):], beside)
	if v.puts() {
		return m.put(v, buf)
	}
	return m.get(v, all, buf)
}

func (m *mover) put(v move, src []byte) error {
	v.fill(src)
	v.put(m.want[v.to], src)
	var err error
	switch v.kind {
	case movePut:
		err = m.win.Put(v.to, m.base+v.at, src)
	case movePutRows:
		err = m.win.PutSection(v.to, m.base+v.at, src, window.Packed(v.rows, v.row, v.pitch))
	default:
		var h window.Handle
		if h, err = m.win.PutNB(v.to, m.base+v.at, src); err != nil {
			return err
		}
		m.open = append(m.open, opened{h: h, ends: func() error { clear(src); return nil }})
	}
	if err != nil {
		return err
	}
	if v.kind != movePutNB {
		clear(src) // it is the caller's again
	}
	if v.flush {
		return m.win.Flush(v.to)
	}
	return m.win.Order(v.to)
}

func (m *mover) get(v move, all, dst []byte) error {
	want := make([]byte, len(dst))
	v.get(m.want[v.to], want)
	check := func() error {
		if err := same(dst, want); err != nil {
			return err
		}
		if err := same(all[v.shift:][:margin], beside); err != nil {
			return fmt.Errorf("before the memory of a get: %w", err)
		}
		if err := same(all[margin+v.shift+len(dst):], beside); err != nil {
			return fmt.Errorf("behind the memory of a get: %w", err)
		}
		return nil
	}
	if err := m.win.Flush(v.to); err != nil {
		return err
	}
	var err error
	switch v.kind {
	case moveGet:
		err = m.win.Get(v.to, m.base+v.at, dst)
	case moveGetRows:
		err = m.win.GetSection(v.to, m.base+v.at, dst, window.Packed(v.rows, v.row, v.pitch))
	default:
		var h window.Handle
		if h, err = m.win.GetNB(v.to, m.base+v.at, dst); err == nil {
			m.open = append(m.open, opened{h: h, get: true, ends: check})
		}
		return err
	}
	if err != nil {
		return err
	}
	return check()
}

// same compares memory and says where it differs first.
func same(got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("byte %d of %d is %#x, want %#x", i, len(want), got[i], want[i])
		}
	}
	return fmt.Errorf("%d bytes, want %d", len(got), len(want))
}
