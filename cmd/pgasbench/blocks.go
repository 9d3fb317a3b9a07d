package main

import (
	"context"
	"fmt"
	"math/bits"

	"gopgas/cmd/pgasbench/figures"
	"gopgas/window"
)

// The operations on blocks.
const (
	opPut   = "put"
	opGet   = "get"
	opPutNB = "putnb"
	opGetNB = "getnb"
)

// blockOps are the operations that --op names, and their calls.
var blockOps = map[string]string{opPut: "Put", opGet: "Get", opPutNB: "PutNB", opGetNB: "GetNB"}

// isGet reports whether what an operation moves comes from the peer.
func isGet(op string) bool { return op == opGet || op == opGetNB }

// blockSizes are the sizes of the bandwidth rows, and how many operations there are between two flushes.
var blockSizes = [...]struct{ bytes, window int }{{64, 64}, {4 << 10, 64}, {64 << 10, 64}, {1 << 20, 16}, {16 << 20, 4}}

// blocks is the memory of a bandwidth row.
type blocks struct {
	win  *window.Window[byte]
	priv []byte // source of puts, destination of gets
	offs []int  // a window of offsets
	size int
	peer int
}

func blockRow(op string, size, inWindow int, hot bool) row {
	name, title := op+"_"+sizeName(size), fmt.Sprintf("%s %s, %d buffers in turn", op, sizeName(size), inWindow)
	if hot {
		name, title = "hot"+name, fmt.Sprintf("%s %s, one hot buffer", op, sizeName(size))
	}
	api := fmt.Sprintf("Window.%s, Flush per %d", blockOps[op], inWindow)
	return row{name: name, title: title, api: api, unit: unitBytes, measure: measureBlocks(op, size, inWindow, hot)}
}

// blockRowOnce is a blocking put of a hot buffer: a flush for each.
func blockRowOnce(size int) row {
	r := blockRow(opPut, size, 1, true)
	r.name, r.title, r.api = r.name+"_flush", r.title+", flush each", "Window.Put + Flush"
	return r
}

// measureBlocks measures size bytes at a time.
func measureBlocks(op string, size, inWindow int, hot bool) func(context.Context, *bench, *row) (int, []float64, error) {
	return func(ctx context.Context, b *bench, r *row) (int, []float64, error) {
		span := max(b.set.bytes, size)
		win, err := window.Allocate[byte](ctx, b.w.Team(), span)
		if err != nil {
			return 0, nil, err
		}
		e := &blocks{win: win, offs: make([]int, inWindow), size: size, peer: b.peer}
		for i := range e.offs {
			if !hot {
				e.offs[i] = i * size % span
			}
		}
		source, sink := win.Local(), []byte(nil)
		if b.w.Rank() == 0 {
			e.priv = make([]byte, e.end())
			sink = e.priv
		}
		if !isGet(op) {
			source, sink = e.priv, win.Local()
		}
		clear(sink) // touches every page
		fillPattern(source[:min(e.end(), len(source))], 1)
		if err := win.Fence(ctx); err != nil {
			return 0, nil, err
		}
		n, values, err := b.alone(ctx, r, inWindow, size, e.loop(op))
		if err != nil {
			return 0, nil, err
		}
		var wrong error
		at := b.peer
		if isGet(op) {
			at = 0
		}
		if b.w.Rank() == at {
			wrong = checkPattern(sink[:e.end()], 1)
		}
		if err := b.agree(ctx, wrong); err != nil {
			return 0, nil, err
		}
		return n, values, win.Free(ctx)
	}
}

// end is where the last block ends.
func (e *blocks) end() int {
	end := 0
	for _, o := range e.offs {
		end = max(end, o+e.size)
	}
	return end
}

// loop returns what does n operations, and flushes behind each window of them. Each has a loop of its own, since a call through a
// variable would be a good part of 64 bytes.
func (e *blocks) loop(op string) func(n int) error {
	return map[string]func(n int) error{opPut: e.put, opGet: e.get, opPutNB: e.putNB, opGetNB: e.getNB}[op]
}

func (e *blocks) put(n int) error {
	for done := 0; done < n; done += len(e.offs) {
		for _, o := range e.offs {
			if err := e.win.Put(e.peer, o, e.priv[o:o+e.size]); err != nil {
				return err
			}
		}
		if err := e.win.Flush(e.peer); err != nil {
			return err
		}
	}
	return nil
}

func (e *blocks) get(n int) error {
	for done := 0; done < n; done += len(e.offs) {
		for _, o := range e.offs {
			if err := e.win.Get(e.peer, o, e.priv[o:o+e.size]); err != nil {
				return err
			}
		}
		if err := e.win.Flush(e.peer); err != nil {
			return err
		}
	}
	return nil
}

func (e *blocks) putNB(n int) error {
	for done := 0; done < n; done += len(e.offs) {
		for _, o := range e.offs {
			if _, err := e.win.PutNB(e.peer, o, e.priv[o:o+e.size]); err != nil {
				return err
			}
		}
		if err := e.win.Flush(e.peer); err != nil {
			return err
		}
	}
	return nil
}

func (e *blocks) getNB(n int) error {
	for done := 0; done < n; done += len(e.offs) {
		for _, o := range e.offs {
			if _, err := e.win.GetNB(e.peer, o, e.priv[o:o+e.size]); err != nil {
				return err
			}
		}
		if err := e.win.Flush(e.peer); err != nil {
			return err
		}
	}
	return nil
}

// pattern is byte i of what is moved: it has no short period, so a block in a wrong place is seen.
func pattern(i int, seed byte) byte { return byte(i) ^ byte(i>>8)*7 ^ byte(i>>16)*31 ^ seed }

func fillPattern(p []byte, seed byte) {
	for i := range p {
		p[i] = pattern(i, seed)
	}
}

func checkPattern(p []byte, seed byte) error {
	for i, v := range p {
		if v != pattern(i, seed) {
			return fmt.Errorf("wrong result: byte %d is %d, want %d", i, v, pattern(i, seed))
		}
	}
	return nil
}

// sweepRows are the rows of one operation over sizes that double, or grow by 5 %. hot: all are of one buffer.
func sweepRows(kind, op string, least, most, span int, fine, hot bool) ([]row, error) {
	switch {
	case blockOps[op] == "":
		return nil, fmt.Errorf("--op %q: want one of: put, get, putnb, getnb", op)
	case least < 1 || most < least:
		return nil, fmt.Errorf("--min %d, --max %d: want 1 <= min <= max", least, most)
	case most > 1<<30:
		return nil, fmt.Errorf("--max %d: want at most %d", most, 1<<30)
	}
	unit, inWindow := map[string]string{"lat": unitNanos, "bw": unitBytes, "rate": unitMillion}[kind], flushEvery
	if kind == "lat" {
		inWindow = 1
	}
	var rows []row
	for _, size := range figures.Sizes(least, most, fine) {
		w := max(1, min(inWindow, 1<<(bits.Len(uint(max(1, span/size)))-1)))
		r := blockRow(op, size, w, hot)
		r.name, r.unit, r.bytes = kind+"_"+op+"_"+sizeName(size), unit, size
		rows = append(rows, r)
	}
	return rows, nil
}
