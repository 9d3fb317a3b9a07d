package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// progress says how far a long run is: on a terminal on one line that is written over and gone at the end, elsewhere on a new
// line every few seconds. Short runs say nothing. Of nil all methods do nothing.
type progress struct {
	out      io.Writer
	terminal bool
	now      func() time.Duration // since the run began

	step, steps int
	what        string
	said        time.Duration // when it last said something
	width       int           // of what stands on the terminal's line
}

// How long a run is silent at first, and between two lines.
const (
	quiet         = 3 * time.Second
	betweenLines  = 5 * time.Second
	betweenFrames = 200 * time.Millisecond
)

func newProgress(out io.Writer, now func() time.Duration) *progress {
	p := &progress{out: out, now: now, said: quiet - betweenLines}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	if p.terminal {
		p.said = quiet - betweenFrames
	}
	return p
}

// at says that step of steps begins, counted from 1.
func (p *progress) at(step, steps int, what string) {
	if p == nil {
		return
	}
	p.step, p.steps, p.what = step, steps, what
	p.say("")
}

// part says that so many repeats of the step are done.
func (p *progress) part(done, of int) {
	if p != nil && done < of {
		p.say(fmt.Sprintf(", repeat %d of %d", done+1, of))
	}
}

func (p *progress) say(part string) {
	now, between := p.now(), betweenLines
	if p.terminal {
		between = betweenFrames
	}
	if now-p.said < between {
		return
	}
	p.said = now
	line := fmt.Sprintf("[%d/%d] %s%s, %s", p.step, p.steps, p.what, part, now.Truncate(100*time.Millisecond))
	if !p.terminal {
		fmt.Fprintln(p.out, line)
		return
	}
	fmt.Fprintf(p.out, "\r%-*s", p.width, line)
	p.width = len(line)
}

// end clears the terminal's line.
func (p *progress) end() {
	if p != nil && p.width > 0 {
		fmt.Fprintf(p.out, "\r%s\r", strings.Repeat(" ", p.width))
		p.width = 0
	}
}
