package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// tap is one place to which a stream of a rank goes, and what stands there before each line.
type tap struct {
	to     sink
	prefix string
}

// routes says where the ranks' output goes, and holds the files.
type routes struct {
	own   []sink // the launcher's streams
	files []outputFile
	sinks map[string]sink // by name, of which a file may have several
}

// outputFile is a file and its sink.
type outputFile struct {
	f    *os.File
	info os.FileInfo
	to   sink
}

// route returns the taps of one stream of a rank: its file if there is one, and the launcher's own stream unless the rank
// is not to be shown or has a file instead.
func (rt *routes) route(s *Spec, at place, screen sink) ([]tap, error) {
	var taps []tap
	pattern := s.Output
	if at.stream == "err" && s.Error != "" {
		pattern = s.Error
	}
	if pattern != "" {
		name, err := fileOf(pattern, at)
		if err != nil {
			return nil, err
		}
		if s.Taken != nil {
			if what := s.Taken(name); what != "" {
				return nil, fmt.Errorf("output of rank %d: %s: %s writes to that file; wanted one of its own for each", at.rank, name, what)
			}
		}
		to, err := rt.open(name)
		if err != nil {
			return nil, fmt.Errorf("output of rank %d: %w", at.rank, err)
		}
		taps = append(taps, tap{to: to})
	}
	if (s.Only == nil || slices.Contains(s.Only, at.rank)) && (pattern == "" || s.Tee) {
		prefix, err := expand(s.Prefix, at)
		if err != nil {
			return nil, err
		}
		if s.Label {
			prefix = labelOf(at.rank, at.size)
		}
		taps = append(taps, tap{screen, prefix})
	}
	return taps, nil
}

// open returns the sink of a file, which the streams that go there share line by line.
func (rt *routes) open(name string) (sink, error) {
	if to, ok := rt.sinks[name]; ok {
		return to, nil
	}
	if to, ok := rt.stream(name); ok {
		return to, nil
	}
	f, err := os.Create(name)
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%w; its folder must be there", err)
	}
	if err != nil {
		return sink{}, err
	}
	to, err := rt.add(f)
	if err != nil {
		return sink{}, errors.Join(err, f.Close())
	}
	if rt.sinks == nil {
		rt.sinks = map[string]sink{}
	}
	rt.sinks[name] = to
	return to, nil
}

// stream returns the launcher's own stream that has this name.
func (rt *routes) stream(name string) (sink, bool) {
	for _, to := range rt.own {
		if Own(name, to.w) != nil {
			return to, true
		}
	}
	return sink{}, false
}

// Own returns which of a launcher's own streams has this name (/dev/stdout, or that of the file to which it was sent), nil if none has: who opens that by name empties it, and
// writes at a place of his own.
func Own(name string, streams ...io.Writer) *os.File {
	info, err := os.Stat(name)
	if err != nil {
		return nil
	}
	for _, s := range streams {
		f, ok := s.(*os.File)
		if !ok {
			continue
		}
		if own, err := f.Stat(); err == nil && os.SameFile(info, own) {
			return f
		}
	}
	return nil
}

// add returns the sink of a file that was just opened: the one that it has already, by another name, since each of two would write over what the other one has
// written.
func (rt *routes) add(f *os.File) (sink, error) {
	info, err := f.Stat()
	if err != nil {
		return sink{}, err
	}
	for _, other := range rt.files {
		if os.SameFile(info, other.info) {
			return other.to, f.Close()
		}
	}
	to := sink{new(outlet), f}
	rt.files = append(rt.files, outputFile{f, info, to})
	return to, nil
}

// close closes the files and returns the first thing that went wrong with one, a full disk for instance.
func (rt *routes) close() error {
	var errs []error
	for _, file := range rt.files {
		errs = append(errs, file.f.Close())
	}
	for _, file := range rt.files {
		if failed := file.to.o.failed.Load(); failed != nil {
			errs = append(errs, fmt.Errorf("the ranks' output is not complete: %w", *failed)) // which names the file
		}
	}
	return errors.Join(errs...)
}

// copyAsItComes moves what a rank prints from r to the taps without waiting for the ends of lines: somebody talks to
// a program that prompts.
func copyAsItComes(taps []tap, r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		for _, t := range taps {
			if n > 0 {
				t.to.write(buf[:n])
			}
		}
		if err != nil {
			return
		}
	}
}

// write writes whole lines with the prefix before each; scratch is memory to use again.
func (t tap) write(lines, scratch []byte) []byte {
	if t.prefix == "" {
		t.to.write(lines)
		return scratch
	}
	prefix := t.prefix
	if strings.Contains(prefix, timeMark) {
		prefix = prefixAt(prefix, time.Now())
	}
	scratch = addLabels(scratch[:0], lines, prefix)
	t.to.write(scratch)
	return scratch
}
