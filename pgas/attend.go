package pgas

import (
	"net"

	"gopgas/bootstrap"
	"gopgas/internal/control"
	"gopgas/internal/proto"
	"gopgas/transport"
)

// channel takes the launcher's channel, if there is one.
func channel(job bootstrap.Job, environ []string) (net.Conn, error) {
	if job.Launcher() != bootstrap.LauncherPgasrun {
		return nil, nil
	}
	conn, err := control.FromEnviron(environ)
	if short := transport.Shortage("the channel to the launcher", err); short != nil {
		return nil, short
	}
	return conn, err
}

// serve answers the launcher, from before the ranks have met until the world is closed; the totals go to it then.
func (w *World) serve(conn net.Conn, node string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = control.Serve(conn, attendant{&handler{w: w, told: teller{told: make([][2]proto.Count, w.Size())}}, node})
	}()
	w.stop = append(w.stop, func() {
		if _, joined := w.start.waits(); joined && w.cfg.Stats {
			_ = control.SendStats(conn, (&handler{w: w}).Stats())
		}
		_ = conn.Close()
		<-done // it looks at shared memory, which goes next
	})
}

// handler answers the launcher's questions.
type handler struct {
	w    *World
	told teller
}

// teller says which flows the launcher does not know yet.
type teller struct {
	told [][2]proto.Count // by rank: what it knows of, of the CPU and of the NIC
	next int              // the rank whose flow is looked at first
}

// Waits implements control.Handler.
func (h *handler) Waits() []Wait { return h.w.Waits() }

// Stats implements control.Handler.
func (h *handler) Stats() control.Stats {
	return control.Stats{Rank: h.w.Rank(), Node: h.w.cards[h.w.Rank()].host(), Transports: h.w.Stats(), Extra: h.w.extra()}
}

// Sample implements control.Handler.
func (h *handler) Sample() control.Sample {
	waits := h.w.Waits()
	flow := func(rank int) [2]proto.Count {
		mapped, nic := h.w.engine.Flow(rank)
		return [2]proto.Count{mapped, nic}
	}
	return control.Sample{
		Node: h.w.cards[h.w.Rank()].host(), Waits: waits[:min(len(waits), control.MostWaits)], Transports: h.w.Stats(),
		Flows: h.told.changed(flow, [2]string{h.w.via(false), h.w.via(true)}), Extra: h.w.levels(),
	}
}

// changed returns the flows that have changed since the last time, as many as fit into a sample; the rest comes first the next
// time. flow is asked for what was moved by CPU and by NIC, in this order; so are vias named.
func (t *teller) changed(flow func(rank int) [2]proto.Count, vias [2]string) (out []control.Flow) {
	for range t.told {
		if len(out)+2 > control.MostFlows {
			break
		}
		rank := t.next
		for i, c := range flow(rank) {
			if c == t.told[rank][i] { // of an operation that is being counted the bytes come later
				continue
			}
			t.told[rank][i] = c
			out = append(out, control.Flow{With: rank, Via: vias[i], Ops: c.Ops, Bytes: c.Bytes})
		}
		t.next = (rank + 1) % len(t.told)
	}
	return out
}

// via names what carries operations: the NIC, or the CPU.
func (w *World) via(nic bool) string {
	if nic {
		return w.engine.NIC()
	}
	return "shm"
}

// levels are extra, what the symmetric heap holds, and what firehoses have met.
func (w *World) levels() map[string]float64 {
	out := w.extra()
	if out == nil {
		out = make(map[string]float64)
	}
	reserved, used := w.HeapUsage()
	out["heap.reserved"], out["heap.used"] = float64(reserved), float64(used)
	o, t := w.engine.Firehoses()
	for name, n := range map[string]uint64{
		"firehose.hits": o.Hits, "firehose.misses": o.Misses, "firehose.moves": o.Moves, "firehose.refused": o.Refusals,
		"firehose.served": t.Moves,
	} {
		if n > 0 {
			out[name] = float64(n)
		}
	}
	return out
}

// PeerGone implements control.Handler: the launcher knows how a rank ended.
func (h *handler) PeerGone(rank int, why string) {
	if rank >= 0 && rank < h.w.Size() && rank != h.w.Rank() {
		h.w.engine.Peers.Tell(rank, why)
	}
}

// Wait is something that the program waits for. It is a struct, by an alias; its fields are
//
//	Op     string        // the operation, in the API's words: "barrier", "lock"
//	Peer   int           // the rank that it waits for; -1: all, or none in particular
//	Since  time.Duration // for how long it has waited
//	Where  string        // file:line of the program's call
//	Detail string        // anything else that a person may need
type Wait = control.Wait

// Waits lists what this rank's goroutines wait for, those that have waited for longer than a moment.
func (w *World) Waits() []Wait {
	var out []Wait
	for _, s := range w.engine.Sched.Waits() {
		out = append(out, Wait{Op: s.Op, Peer: s.Peer, Since: s.Since, Where: s.Where})
	}
	return out
}

// PathStats is what travelled on one path. It is a struct, by an alias; its fields are
//
//	Ops   uint64 // operations
//	Bytes uint64 // what they moved
//	Waits uint64 // how often a call had to wait for room
type PathStats = control.Path

// Stats returns what this rank has moved: by transport, named as PGAS_TRANSPORT does, and by path. Operations on
// mapped memory are counted only when Config.Stats is set.
func (w *World) Stats() map[string]map[string]PathStats {
	out := make(map[string]map[string]PathStats)
	for p, n := range w.engine.Stats() {
		name := w.via(p.OverNIC())
		if out[name] == nil {
			out[name] = make(map[string]PathStats)
		}
		out[name][p.String()] = PathStats{Ops: n.Ops, Bytes: n.Bytes, Waits: n.Waits}
	}
	return out
}

// nextNeighbour is the next rank on this node after rank, in a circle, that has not ended; -1 if none is left.
func (w *World) nextNeighbour(rank int) int {
	for i := 1; i <= w.Size(); i++ {
		r := (rank + i) % w.Size()
		if r == w.Rank() {
			return -1
		}
		if w.engine.Nodes[r] == w.engine.Nodes[w.Rank()] && !w.engine.Peers.Ended(r) {
			return r
		}
	}
	return -1
}

// lives says for a NIC whether a rank's process lives, and whether anybody can tell: the ranks, which tell each other of deaths; the
// kernel, of a process on this node; and the launcher, which would have told of its end. Of a rank that is a goroutine of this process
// nobody can tell.
func (w *World) lives(rank int, launcherTells bool) (lives, known bool) {
	if w.engine.Peers.Ended(rank) {
		return false, true
	}
	me := w.Rank()
	if w.engine.Nodes[rank] == w.engine.Nodes[me] && w.cards[rank].pid() != w.cards[me].pid() {
		return processLives(w.cards[rank].pid())
	}
	return launcherTells, launcherTells
}
