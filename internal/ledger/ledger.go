package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// version is of the pages: others' are not read. It changes with what pages say, whatever that is.
const version = 1

// mostBytes is how long a file may be that is read.
const mostBytes = 1 << 20

// Ledger is a directory of pages. The zero Ledger keeps nothing.
type Ledger struct{ dir string }

// Open returns the ledger in a directory, which the first Write makes if the one above it is there. Of the empty name it is the zero Ledger. It stays where it is
// when the process goes to another directory.
func Open(dir string) (Ledger, error) {
	if dir == "" {
		return Ledger{}, nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Ledger{}, err
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(dir)); err != nil {
			return Ledger{}, fmt.Errorf("make it: %w", bare(err))
		}
	case err != nil:
		return Ledger{}, bare(err)
	case !info.IsDir():
		return Ledger{}, errors.New("found a file, want a directory")
	}
	return Ledger{dir}, nil
}

// bare is err without the path, which the caller names.
func bare(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	return err
}

// Keeps reports whether this is a ledger at all.
func (l Ledger) Keeps() bool { return l.dir != "" }

// page is a file.
type page struct {
	Version  int
	Kind     string
	Measured time.Time
	What     json.RawMessage
}

// path is where the page of a kind is; name begins the file's, for who looks into the directory.
func (l Ledger) path(name, kind string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(kind))
	return filepath.Join(l.dir, fmt.Sprintf("%s-%016x.json", name, h.Sum64()))
}

// Read returns what was measured of a kind, and when; nil where nothing is known, with an error where there is a file that cannot be used.
func (l Ledger) Read(name, kind string) (what []byte, measured time.Time, err error) {
	if !l.Keeps() {
		return nil, measured, nil
	}
	path := l.path(name, kind)
	text, err := text(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, measured, nil
	case err != nil:
		return nil, measured, err
	}
	var p page
	switch err := json.Unmarshal(text, &p); {
	case err != nil:
		return nil, measured, fmt.Errorf("%s: %w", path, err)
	case p.Version != version:
		return nil, measured, fmt.Errorf("%s: version %d, want %d", path, p.Version, version)
	case p.Kind != kind:
		return nil, measured, fmt.Errorf("%s: it is of %s, want %s", path, p.Kind, kind)
	}
	return p.What, p.Measured, nil
}

// text returns what is in a file, which is one: who opened a pipe would wait for its writer.
func text(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: found %v, want a file", path, info.Mode().Type())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err = errors.Join(err, f.Close()); err == nil && len(all) > mostBytes {
		err = fmt.Errorf("%s: more than %d bytes: want at most that", path, mostBytes)
	}
	return all, err
}

// Write keeps what was measured of a kind, which is JSON, and when.
func (l Ledger) Write(name, kind string, what []byte, measured time.Time) error {
	if !l.Keeps() {
		return nil
	}
	text, err := json.Marshal(page{version, kind, measured.UTC().Truncate(time.Second), what})
	if err != nil {
		return err
	}
	if err := os.Mkdir(l.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.CreateTemp(l.dir, name+"-*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), l.path(name, kind))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
