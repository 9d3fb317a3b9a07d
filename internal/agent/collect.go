package agent

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// What the ranks of a host leave in a folder that was made for them (crew.Plan.Folder) comes to the launcher on channel 0, as a tar archive of plain
// files without folders, and behind them an empty one that says that these are all.

// lastFile is the name of that one.
const lastFile = ".end"

// An agent may send nothing for mostSilent steps, as long as ssh waits for a host (Command). It is counted in steps so that the time in which this process was
// stopped itself is one of them.
const (
	silentStep = time.Second
	mostSilent = 15
)

// Collect has the agent send what the ranks have left in the folder of their host, and writes it to a folder here. An agent that falls silent, as one that was
// stopped, is an error, and so is the end of ctx. Call it after they have ended.
func (h *Host) Collect(ctx context.Context, dir string) error {
	return h.collect(ctx, dir, silentStep)
}

func (h *Host) collect(ctx context.Context, dir string, step time.Duration) error {
	h.stream.tell(note{Do: collect})
	from, over, left := &counted{from: h.program}, make(chan struct{}), make(chan error, 1)
	go func() {
		why := from.watch(ctx, step, over)
		if why != nil {
			h.program.Close() // which ends the reading
		}
		left <- why
	}()
	err := unpack(dir, from)
	close(over)
	if why := <-left; why != nil && err != nil {
		err = why
	}
	h.program.Close()
	if err != nil {
		return fmt.Errorf("host %s: collect what its ranks have written: %w", h.cfg.Name, err)
	}
	return nil
}

// counted is a reader that another goroutine can see wait.
type counted struct {
	from  io.Reader
	reads atomic.Uint64 // begun and ended: odd while one waits
}

func (c *counted) Read(p []byte) (int, error) {
	c.reads.Add(1)
	defer c.reads.Add(1)
	return c.from.Read(p)
}

// watch returns why it is not to be read on: the same read has waited for mostSilent steps, or ctx has ended; nil when over is closed.
func (c *counted) watch(ctx context.Context, step time.Duration, over <-chan struct{}) error {
	t := time.NewTicker(step)
	defer t.Stop()
	for before, n := uint64(0), 0; n < mostSilent; {
		select {
		case <-t.C:
		case <-over:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if now := c.reads.Load(); now == before && now%2 == 1 {
			n++
		} else {
			before, n = now, 0
		}
	}
	return fmt.Errorf("its agent has sent nothing for %v", mostSilent*step)
}

// unpack takes plain files with plain names, and nothing else, whoever packed them.
func unpack(dir string, from io.Reader) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	in := tar.NewReader(from)
	for {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		if head.Name == lastFile {
			return nil
		}
		if head.Typeflag != tar.TypeReg || head.Name != filepath.Base(head.Name) {
			return fmt.Errorf("%w: %.40q is no plain file", ErrMalformed, head.Name)
		}
		f, err := root.OpenFile(head.Name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, in)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
}

// pack writes the files of a folder; an empty name is of none. Their ranks may be killed but not gone: of a file that grows it takes what there is.
func pack(to io.Writer, dir string) error {
	out := tar.NewWriter(to)
	var entries []os.DirEntry
	if dir != "" {
		var err error
		if entries, err = os.ReadDir(dir); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		if err := packFile(out, filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return errors.Join(out.WriteHeader(&tar.Header{Name: lastFile}), out.Close())
}

func packFile(out *tar.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := out.WriteHeader(&tar.Header{Name: filepath.Base(name), Mode: 0o600, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.CopyN(out, f, info.Size())
	return err
}

// folder makes the agent's own folder, which goes with the job.
func (a *server) folder() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.scratch == "" {
		dir, err := os.MkdirTemp("", "pgasrun-")
		if err != nil {
			return "", err
		}
		a.scratch = dir
	}
	return a.scratch, nil
}

// share makes a folder for what ranks leave, and tells them of it in the variable that the plan names.
func (a *server) share(variable string) (set string, err error) {
	own, err := a.folder()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(own, "left-") // beside a program that may be called anything
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left = dir
	return variable + "=" + dir, nil
}

// hand sends what the ranks have left. A failure leaves out the last file, which the launcher misses.
func (a *server) hand(dir string, to *channel) {
	_ = pack(to, dir)
	to.CloseWrite()
}
