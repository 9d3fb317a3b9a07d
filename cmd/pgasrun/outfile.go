package main

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"gopgas/internal/launch"
)

// outFile is a file that is written at the end. It is opened before anything is begun that takes time, and what is in it stays until there is something to take its
// place. The zero one is none.
type outFile struct {
	file  *os.File // nil: none, or it has ended
	fresh bool     // it was not there before
	own   bool     // it is a stream of pgasrun's own, which is neither emptied nor closed
	begun bool     // it has been written to
}

// openOut opens a file, with further flags of open(2), unless it is one of pgasrun's own streams.
func openOut(name string, mode int, streams ...io.Writer) (*outFile, error) {
	if own := launch.Own(name, streams...); own != nil {
		return &outFile{file: own, own: true}, nil
	}
	_, err := os.Lstat(name)
	f := &outFile{fresh: errors.Is(err, fs.ErrNotExist)}
	f.file, err = os.OpenFile(name, mode|os.O_CREATE, 0o666)
	return f, err
}

// takes says whether a name is that of this file, which is a plain one: others, as a pipe or /dev/null, may take what several write.
func (f *outFile) takes(name string) bool {
	if f.file == nil || f.own || launch.Own(name, f.file) == nil {
		return false
	}
	at, err := f.file.Stat()
	return err == nil && at.Mode().IsRegular()
}

// Write empties the file before the first bytes.
func (f *outFile) Write(b []byte) (int, error) {
	if !f.begun && !f.own {
		if err := f.file.Truncate(0); err != nil && !errors.Is(err, unix.EINVAL) { // no plain file but /dev/full, say
			return 0, err
		}
	}
	f.begun = true
	return f.file.Write(b)
}

// end closes the file; if there was nothing to write it is as it was before. Ending it again does nothing.
func (f *outFile) end() error {
	file := f.file
	f.file = nil
	if file == nil || f.own {
		return nil
	}
	err := file.Close()
	if f.fresh && !f.begun {
		err = errors.Join(err, os.Remove(file.Name()))
	}
	return err
}

// discard ends what has not been ended.
func (f *outFile) discard() { _ = f.end() }
