package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gopgas/internal/cost"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/regmgr"
	"gopgas/transport"
	"gopgas/transport/auto"
)

// calibrate measures the costs of registered memory with the NIC of that name on this machine; where file is named, the
// model is written there, for PGAS_CALIBRATION.
func calibrate(nic, file string, s streams) ([]infoSection, error) {
	p, err := auto.Provider(nic, auto.Config{})
	if err != nil {
		return nil, usage("--calibrate with --nic %s: %v", nic, err)
	}
	to, err := openModel(file, s.out, s.err)
	if err != nil {
		return nil, err
	}
	defer to.discard()
	clock := sched.Process(1)
	d, err := p.Open(context.Background(), transport.Config{Size: 1, Job: fmt.Sprintf("calibrate-%d", os.Getpid()), Sched: clock})
	if err != nil {
		return nil, fmt.Errorf("open the %s NIC to measure its costs: %w", nic, err)
	}
	begin := clock.Now()
	m, err := regmgr.Calibrate(context.Background(), d, clock, d)
	took := clock.Now() - begin
	if err = errors.Join(err, d.Close()); err != nil {
		return nil, fmt.Errorf("measure the costs of the %s NIC: %w", nic, err)
	}
	m.Name = nic
	if err := writeModel(to, m); err != nil {
		return nil, err
	}
	return modelInfo(m, took), nil
}

// openModel opens the file of --write.
func openModel(name string, streams ...io.Writer) (*outFile, error) {
	if name == "" {
		return &outFile{}, nil
	}
	f, err := openOut(name, os.O_WRONLY, streams...)
	if err != nil {
		return nil, usage("--write: %v; wanted a file in a folder that is there and that you may write to", err)
	}
	return f, nil
}

// writeModel writes a model where there is a file for it.
func writeModel(f *outFile, m cost.Model) error {
	if f.file == nil {
		return nil
	}
	err := m.Write(f)
	if err != nil {
		f.begun = false // half of a model is none
	}
	if err = errors.Join(err, f.end()); err != nil {
		return fmt.Errorf("write the costs: %w", err)
	}
	return nil
}

// modelInfo tells a model: the fits, what they were fitted to with each residual, and the copies.
func modelInfo(m cost.Model, took time.Duration) []infoSection {
	line := func(l cost.Line) string {
		return fmt.Sprintf("%.2f us + %.3f us a page", l.B/1e3, l.A/1e3)
	}
	fits := infoSection{title: fmt.Sprintf("costs of %s, measured in %v", m.Name, took.Round(100*time.Microsecond)), rows: []infoRow{
		{"register", line(m.Register), fmt.Sprintf("largest residual %.2f us", m.Register.Residual/1e3)},
		{"deregister", line(m.Deregister), fmt.Sprintf("largest residual %.2f us", m.Deregister.Residual/1e3)},
		posts(m),
		{"cached region", fmt.Sprintf("%.0f ns", m.Lookup), "found, referenced and released"},
		{"comparison", fmt.Sprintf("%.1f ns", m.Compare), "of entries in a queue"},
		{"prediction", fmt.Sprintf("%.0f ns", m.Hash), "of a use: its signature, a look into the table of call sites, the update: t_hash"},
		turn("time slice", m.Slice, "for which a thread keeps a core that others wait for, as the kernel says: t_slice of helpers that share a core"),
		turn("context switch", m.Swap, "between two threads of a core, beside the system calls: t_cs of such helpers"),
		{"threshold", mem.Text(uint64(m.LeastRegistered(regmgr.LeastRegistered))), "from which a cached region is cheaper than a copy: in force under PGAS_REG=predictive, or with this in PGAS_CALIBRATION"},
	}}
	fitted := func(name string, l cost.Line, samples []cost.Sample, of string) (out infoSection) {
		out.title = name + " (" + of + ", measured, residual)"
		for _, s := range samples {
			over := s.Nanos - l.A*float64(s.N) - l.B
			out.rows = append(out.rows, infoRow{fmt.Sprint(s.N), fmt.Sprintf("%.2f us", s.Nanos/1e3), fmt.Sprintf("%+.2f us, %+.1f %%", over/1e3, 100*over/s.Nanos)})
		}
		return out
	}
	copies := infoSection{title: "copy (bytes, time, rate)"}
	for _, s := range m.Copy {
		copies.rows = append(copies.rows, infoRow{mem.Text(uint64(s.N)), fmt.Sprintf("%.2f us", s.Nanos/1e3), fmt.Sprintf("%.2f GB/s", m.Copy.Rate(s.N)/1e9)})
	}
	all := []infoSection{
		fits, fitted("registrations", m.Register, m.RegisterSamples, "pages"), fitted("deregistrations", m.Deregister, m.DeregisterSamples, "pages"),
	}
	if m.PostLine != nil {
		all = append(all, fitted("posts", *m.PostLine, m.PostSamples, "operations at once"))
	}
	return append(all, copies)
}

// turn tells how threads take turns on a core.
func turn(name string, nanos float64, what string) infoRow {
	if nanos == 0 {
		return infoRow{name, "not known", what + "; the library assumes one"}
	}
	return infoRow{name, fmt.Sprintf("%.2f us", nanos/1e3), what}
}

// posts tells what it takes to hand operations to the NIC.
func posts(m cost.Model) infoRow {
	if m.PostLine == nil {
		return infoRow{"post", "not measured", "the NIC takes one operation at a time"}
	}
	return infoRow{
		"post", fmt.Sprintf("%.0f ns + %.0f ns an operation", m.PostLine.B, m.PostLine.A),
		fmt.Sprintf("largest residual %.0f ns; %.0f ns for one", m.PostLine.Residual, m.Post),
	}
}
