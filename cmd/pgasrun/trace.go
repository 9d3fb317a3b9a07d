package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"gopgas/internal/launch"
	"gopgas/internal/timeline"
)

// envTimeline is how ranks are told where to write what they do.
const envTimeline = "PGAS_TIMELINE"

// picture is the file of --trace. The zero picture is none.
type picture struct {
	*outFile
	dir string // of the ranks' files
}

// openPicture opens the file of --trace, if there is one, before anything is built or started. stats is where --stats writes: a file cannot be both.
func openPicture(c *cli.Context, s streams, stats *outFile) (picture, error) {
	name := c.String("trace")
	if name == "" {
		if c.IsSet("trace") {
			return picture{}, usage("--trace without a file: wanted --trace FILE")
		}
		return picture{outFile: &outFile{}}, nil
	}
	if stats.takes(name) {
		return picture{}, usage("--trace %s: --stats=json:%s writes to that file; wanted one of its own for each", name, stats.file.Name())
	}
	f, err := openOut(name, os.O_RDWR, s.out, s.err)
	if err != nil {
		return picture{}, usage("--trace %s: the file cannot be made: %w; wanted a file in a folder that is there and that you may write to", name, err)
	}
	return picture{outFile: f}, nil
}

// take has the ranks write to a folder of their own within scratch.
func (p *picture) take(spec *launch.Spec, scratch string) error {
	if p.file == nil {
		return nil
	}
	dir, err := os.MkdirTemp(scratch, "timeline-") // beside a program that may be called anything
	if err != nil {
		return fmt.Errorf("make a folder for the ranks' timelines: %w", err)
	}
	p.dir = dir
	spec.Folder, spec.FolderEnv = p.dir, envTimeline
	return nil
}

// draw merges the ranks' files, by the clock of this machine, and says what there is to see.
func (p *picture) draw(ranks []launch.RankEnd, stderr io.Writer) error {
	if p.file == nil {
		return nil
	}
	sources, within := make([]timeline.Source, len(ranks)), time.Duration(0)
	for r, e := range ranks {
		sources[r].Open = func() (io.ReadCloser, error) { return os.Open(filepath.Join(p.dir, timeline.FileName(r))) }
		sources[r].Here = e.Clock.Here
		within = max(within, e.Clock.Within())
	}
	name := p.file.Name()
	sum, err := timeline.Merge(p, sources)
	err = errors.Join(err, p.end())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--trace %s: no rank wrote anything; is it a program of this library?", name)
	case err != nil:
		return fmt.Errorf("--trace %s: %w", name, err)
	}
	text := fmt.Sprintf("pgasrun: %s: %d spans of %d ranks; open it with https://ui.perfetto.dev", name, sum.Spans, sum.Ranks)
	if sum.Lost > 0 {
		text += fmt.Sprintf("; %d more were lost for want of room", sum.Lost)
	}
	if within > 0 {
		text += fmt.Sprintf("; clocks of other hosts are within %v of this one's", within.Round(time.Microsecond))
	}
	if missing := len(ranks) - sum.Ranks; missing > 0 {
		text += fmt.Sprintf("; %d ranks wrote nothing", missing)
	}
	_, err = fmt.Fprintln(stderr, text)
	return err
}
