package pgas

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"gopgas/internal/cost"
	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/seats"
	"gopgas/regmgr"
)

// registrationFrom reads the settings of registered memory.
func (c *Config) registrationFrom(environ []string) error {
	c.Reg, _ = lookup(environ, envReg)
	c.Calibration, _ = lookup(environ, envCosts)
	c.IdleCores, _ = lookup(environ, envIdle)
	c.Predict, _ = lookup(environ, envPredict)
	for name, to := range map[string]*int64{envRegLimit: &c.RegLimit, envRegLeast: &c.RegThreshold} {
		v, _ := lookup(environ, name)
		if v == "" {
			continue
		}
		n, err := mem.ParseBytes(v)
		if err != nil {
			return fmt.Errorf("%w: %s=%q: %w", ErrConfig, name, v, err)
		}
		*to = n
	}
	return nil
}

// preferred is the value of PGAS_REG, and its default, that leaves the policy to regmgr.Facts.Prefer.
const preferred = "auto"

// mostThreshold is the largest Config.RegThreshold: more than any transfer has.
const mostThreshold = 1 << 40

// registration checks the settings of registered memory and gives them the engine's form.
func (c *Config) registration() (proto.Registration, error) {
	name := c.Reg
	if name == preferred {
		name = "" // the default of a NIC of which nothing is known
	}
	p, err := regmgr.ParsePolicy(name)
	if err != nil {
		return proto.Registration{}, fmt.Errorf("%w: %s: %w, or %s", ErrConfig, envReg, err, preferred)
	}
	if c.RegLimit < 0 || c.RegThreshold < 0 {
		return proto.Registration{}, fmt.Errorf("%w: %s=%d, %s=%d: want bytes from 0 on", ErrConfig, envRegLimit, c.RegLimit,
			envRegLeast, c.RegThreshold)
	}
	if c.RegThreshold > mostThreshold {
		return proto.Registration{}, fmt.Errorf("%w: %s=%d: want at most %d (1T), from which nothing is registered either", ErrConfig, envRegLeast, c.RegThreshold,
			int64(mostThreshold))
	}
	if c.MaxPinned < 0 {
		return proto.Registration{}, fmt.Errorf("%w: %s=%d: want bytes from 0 on", ErrConfig, envPinned, c.MaxPinned)
	}
	if c.MaxPinned > 0 && c.RegLimit > c.MaxPinned {
		return proto.Registration{}, fmt.Errorf("%w: %s=%d is to be a part of %s=%d", ErrConfig, envRegLimit, c.RegLimit, envPinned, c.MaxPinned)
	}
	r := proto.Registration{
		Policy: p, Bytes: c.RegLimit, Threshold: int(c.RegThreshold), Preferred: name == "", Memory: machineMemory(),
	}
	if r.Idle, err = idleCores(c.IdleCores); err != nil {
		return r, err
	}
	if r.Predict, err = prediction(c.Predict); err != nil {
		return r, fmt.Errorf("%w: %s: %w", ErrConfig, envPredict, err)
	}
	if c.Calibration == "" {
		return r, nil
	}
	m, err := calibration(c.Calibration)
	if err != nil {
		return r, fmt.Errorf("%w: %s=%q: %w", ErrConfig, envCosts, c.Calibration, err)
	}
	r.Costs = &m
	return r, nil
}

// helperAlways is the value of PGAS_IDLE_CORES that asks for no core.
const helperAlways = "always"

// idleCores returns the policy of that name; the empty name is auto.
func idleCores(name string) (proto.IdleCores, error) {
	switch name {
	case helperAlways:
		return proto.IdleCores{Always: true}, nil
	case "":
		return proto.IdleCores{Policy: seats.Auto}, nil
	}
	p, err := seats.Parse(name)
	if err != nil {
		return proto.IdleCores{}, fmt.Errorf("%w: %s: %w, or %s", ErrConfig, envIdle, err, helperAlways)
	}
	return proto.IdleCores{Policy: p}, nil
}

// prediction takes apart what Config.Predict says.
func prediction(text string) (p proto.Prediction, err error) {
	if text == "" {
		return p, nil
	}
	said := make(map[string]bool)
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(value)
		switch {
		case err != nil, said[name]:
			return p, fmt.Errorf("%q: %w", part, errPredict)
		case name == "window" && n == 0:
			p.Window = regmgr.NoWindow
		case name == "window" && n > 0 && n <= regmgr.MaxWindow:
			p.Window = n
		case name == "age" && n >= 0:
			p.Age = n
		case name == "periodicity" && n >= 8 && n <= 1024:
			p.Periods = n
		default:
			return p, fmt.Errorf("%q: %w", part, errPredict)
		}
		said[name] = true
	}
	if said["periodicity"] && len(said) > 1 {
		return p, fmt.Errorf("%q: periodicity goes with nothing else: %w", text, errPredict)
	}
	return p, nil
}

var errPredict = errors.New("want window=0 to 4 and age=0 or more, such as window=2,age=3, or periodicity=8 to 1024")

// calibration returns the costs of that name, or from the file of that name.
func calibration(name string) (cost.Model, error) {
	if m, err := cost.Named(name); err == nil {
		return m, nil
	}
	f, err := os.Open(name)
	if err != nil {
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			err = path.Err // the caller names the file
		}
		return cost.Model{}, fmt.Errorf("%w; want a file, or one of: %s", err, strings.Join(cost.Names(), ", "))
	}
	defer f.Close()
	return cost.Read(f)
}

// Registered returns the counters of the memory that this rank has registered for its transfers over a NIC, and the first
// registration that was refused, with what was found and the cure; later ones are only counted. Close prints it. It says, too, why a
// registration helper has ended by itself. Without a NIC all is zero.
func (w *World) Registered() (regmgr.Stats, error) {
	s, refused, _ := w.engine.Registered()
	return s, refused
}

// sayRefused says what Registered would have said of refusals, to who has not asked.
func (w *World) sayRefused() {
	if s, refused := w.Registered(); refused != nil {
		w.say(fmt.Sprintf("warning: rank %d: %v; registrations refused: %d, transfers copied for want of room: %d, because of the NIC: %d", w.Rank(), refused,
			s.Refused, s.CopiedBudget, s.CopiedRefused))
	}
}

// KeepRegistered tells that the memory of b, which lies outside the Go heap (a mapping, C's), stays what it is until the
// lifetime that it returns is ended: until then registrations of it are kept. Go memory needs no such word, and is refused.
// Where no NIC is in use the lifetime is nil; ending a nil one does nothing.
func (w *World) KeepRegistered(b []byte) (*regmgr.Lifetime, error) { return w.engine.KeepRegistered(b) }

// extra are the counters of registered memory, and of the usage table of small buffers, under the names that pgasrun --stats prints.
func (w *World) extra() map[string]float64 {
	s, _, ok := w.engine.Registered()
	if !ok {
		return w.checkStats(nil)
	}
	out := map[string]float64{
		"reg.bytes": float64(s.Bytes), "reg.peak": float64(s.PeakBytes), "reg.average": s.AverageBytes,
		"reg.registrations": float64(s.Registrations), "reg.deregistrations": float64(s.Deregistrations),
		"reg.hits": float64(s.Hits), "reg.waits": float64(s.Waits),
		"reg.miss.cold": float64(s.MissCold), "reg.miss.partial": float64(s.MissPartial), "reg.miss.rights": float64(s.MissRights),
		"reg.copied.policy": float64(s.CopiedPolicy), "reg.copied.origin": float64(s.CopiedOrigin),
		"reg.copied.budget": float64(s.CopiedBudget), "reg.copied.refused": float64(s.CopiedRefused), "reg.refused": float64(s.Refused),
		"reg.stuck": float64(s.Stuck), "reg.threshold": float64(s.Threshold),
		"reg.evicted": float64(s.Evicted), "reg.collected": float64(s.Collected), "reg.shed": float64(s.Shed), "reg.lent": float64(s.Lent), "reg.joined": float64(s.Joined),
	}
	if e, ok := w.engine.Bypasses(); ok {
		out["eager.buffers"], out["eager.frequent"], out["eager.chained"] = float64(e.Buffers), float64(e.Frequent), float64(e.Chained)
		out["eager.refused"], out["eager.bypassed"], out["eager.bounced"] = float64(e.Refused), float64(e.Bypass), float64(e.Bounce)
	}
	w.addPipes(out)
	if s.Policy == regmgr.Predictive.String() {
		out["reg.ahead"] = float64(s.Ahead)
		out["reg.predicted"], out["reg.within0.5"], out["reg.within5"] = float64(s.Prediction.Made), float64(s.Prediction.Within05),
			float64(s.Prediction.Within5)
		out["reg.mispredicted"], out["reg.lostDQ"] = float64(s.Prediction.Missed), float64(s.Prediction.LostDQ)
		out["reg.late"], out["reg.poll_ns"] = float64(s.Prediction.Late), float64(s.Prediction.Poll)
		out["reg.helper"] = 0
		if s.Prediction.Helper {
			out["reg.helper"] = 1
		}
	}
	w.addFirehoses(out)
	return w.checkStats(out)
}
