package lint

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// marks are the words of unfinished work, and paths are folders of one machine. Both are spelled so that these
// lines do not match themselves.
var (
	marks = `\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`
	paths = `(^|[^\w.~/-])/(wo` + `rk|ro` + `ot)(/|\b)`
)

// Words reads every tracked file of the repository at root as text and returns a finding for every mark of
// unfinished work and every absolute path into the folders of one machine. Without a repository (an unpacked
// archive) it reads every file below root. Binary files and checksums are left out.
func Words(root string) ([]Finding, error) {
	names, err := tracked(root)
	if err != nil {
		return nil, err
	}
	var all []Finding
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, and the deletion is not committed yet
		}
		if err != nil {
			return nil, fmt.Errorf("read the tree: %w", err)
		}
		all = append(all, wordsIn(name, text)...)
	}
	sortFindings(all)
	return all, nil
}

func wordsIn(name string, text []byte) []Finding {
	if filepath.Base(name) == "go.sum" || bytes.IndexByte(text, 0) >= 0 {
		return nil
	}
	mark, path := regexp.MustCompile(marks), regexp.MustCompile(paths)
	var all []Finding
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if m := mark.Find(line); m != nil {
			all = append(all, Finding{name, n, "words", fmt.Sprintf("%s: finish it, or write it down where work is planned", m)})
		}
		if path.Match(line) {
			all = append(all, Finding{name, n, "words", "absolute path of one machine"})
		}
	}
	return all
}

// tracked returns the files of the tree, relative to root.
func tracked(root string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = root
	out, err := cmd.Output()
	if err == nil && len(out) > 0 {
		return strings.Split(strings.TrimRight(string(out), "\x00"), "\x00"), nil
	}
	var names []string
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() {
			rel, err := filepath.Rel(root, p)
			if err != nil {
				return err
			}
			names = append(names, rel)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the tree: %w", err)
	}
	return names, nil
}
