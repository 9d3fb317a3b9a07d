// Package npmtest gets programs in JavaScript that tests hold our files against, from npm's registry: one package at one version, whose bytes the test
// knows beforehand, unpacked once into a cache of the user's. Nothing of it is run to install it. Tests only.
package npmtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gopgas/test/debtest"
)

// Package is what to get.
type Package struct {
	Name, Version string
	Integrity     string // of its archive, as npm writes it: sha512-…
	Folder        string // the part of it that is unpacked
}

// patience is for a slow line: an archive has some tens of megabytes.
const patience = 5 * time.Minute

// Need returns the folder where the package's part lies. The test fails, and says why, where it is not there and cannot be got.
func Need(t testing.TB, p Package) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil { // a user without a home
		cache = filepath.Join(os.TempDir(), fmt.Sprint("cache-", os.Getuid()))
	}
	dir := p.in(cache)
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if err := p.fetch(t, dir); err != nil {
		t.Fatalf("%s, version %s, which this test cannot do without, is not in %s and cannot be got from npm's registry: %v", p.Name, p.Version, dir, err)
	}
	return dir
}

func (p Package) in(cache string) string {
	return filepath.Join(cache, "gopgas-npm", strings.ReplaceAll(p.Name, "/", "+")+"-"+p.Version)
}

// fetch makes dir. Tests of several packages may do so at once: the first one's stays.
func (p Package) fetch(t testing.TB, dir string) error {
	debtest.Need(t, "node", "nodejs")
	npm := debtest.Need(t, "npm", "npm")
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "work-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "pack", "--silent", "--ignore-scripts", p.Name+"@"+p.Version)
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm pack: %w: %s", errors.Join(err, ctx.Err()), out)
	}
	archives, err := filepath.Glob(filepath.Join(work, "*.tgz"))
	if err != nil || len(archives) != 1 {
		return fmt.Errorf("npm pack has left %q (%w)", archives, err)
	}
	archive, err := os.ReadFile(archives[0])
	if err != nil {
		return err
	}
	whole := filepath.Join(work, "whole")
	if err := p.unpack(archive, whole); err != nil {
		return err
	}
	if err := os.Rename(whole, dir); err != nil {
		if _, there := os.Stat(dir); there != nil {
			return err
		}
	}
	return nil
}

// unpack writes the files of the package's folder into dir, if the archive is the one that is meant.
func (p Package) unpack(archive []byte, dir string) error {
	sum := sha512.Sum512(archive)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != p.Integrity {
		return fmt.Errorf("the archive is another one: %s, wanted %s", got, p.Integrity)
	}
	plain, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return err
	}
	files, inside := tar.NewReader(plain), "package/"+p.Folder+"/"
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name, ok := strings.CutPrefix(h.Name, inside)
		if !ok || h.Typeflag != tar.TypeReg || !filepath.IsLocal(name) {
			continue
		}
		b, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			return err
		}
	}
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("the archive has nothing in %s", p.Folder)
	}
	return nil
}
