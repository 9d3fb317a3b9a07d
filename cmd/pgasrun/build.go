package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"gopgas/internal/crew"
)

// source is Go code to build: in a folder, by import path, or in a file.
type source struct {
	shown string // as the user wrote it
	name  string // of the binary
	dir   string // where the go command runs; empty: here
	arg   string // what it builds
}

// findSource says whether program means Go code, and returns nil for what is to be run as it is. An error says that it is
// neither.
func findSource(program string) (*source, error) {
	info, err := os.Stat(program)
	if !strings.Contains(program, "/") { // a bare name is a program of PATH first
		if _, err := exec.LookPath(program); err == nil {
			return nil, nil
		}
		if err != nil {
			return nil, nil // Lookup says it best
		}
	}
	switch {
	case err == nil && info.IsDir():
		if files, _ := filepath.Glob(filepath.Join(program, "*.go")); len(files) == 0 {
			return nil, fmt.Errorf("%w: %s is a folder without Go files; wanted a binary or a folder with a Go package", crew.ErrNotExecutable, program)
		}
		abs, err := filepath.Abs(program)
		return &source{shown: program, name: filepath.Base(abs), dir: abs, arg: "."}, err
	case err == nil && strings.HasSuffix(program, ".go") && info.Mode()&0o111 == 0:
		return &source{shown: program, name: strings.TrimSuffix(filepath.Base(program), ".go"), arg: program}, nil
	case errors.Is(err, os.ErrNotExist) && !strings.HasPrefix(program, "/") && !strings.HasPrefix(program, ".") && looksImported(program):
		return &source{shown: program, name: path.Base(program), arg: program}, nil
	}
	return nil, nil
}

// looksImported says whether a name with a slash can be an import path that the go command knows.
func looksImported(name string) bool {
	out, err := exec.Command("go", "list", "-f", "{{.Name}}", "--", name).Output()
	return err == nil && len(out) > 0
}

func (s *source) command(binary string) []string {
	cmd := []string{"go"}
	if s.dir != "" {
		cmd = append(cmd, "-C", s.dir)
	}
	return append(cmd, "build", "-o", binary, s.arg)
}

// build compiles s. A signal to stop ends the compiler too, and so does the end of pgasrun; what either leaves lies in the binary's folder, which goes with
// the job, since the go command does not clear up when it is stopped.
func (s *source) build(binary string, st streams) error {
	if _, err := exec.LookPath("go"); err != nil {
		return &exit{codeUsage, fmt.Sprintf("%s is Go code, and there is no go command in PATH to build it: install Go, or give a binary", s.shown)}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	argv := s.command(binary)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = st.err, st.err
	dir := filepath.Dir(binary)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the go command's own children are ended with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	guard, err := crew.StartGuard(dir, "") // as a job's own does later
	if err != nil {
		return fmt.Errorf("build %s: %w", s.shown, err)
	}
	defer guard.Dismiss()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build %s: %w", s.shown, err)
	}
	guard.Watch(cmd.Process.Pid)
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case err := <-done:
			return s.judge(err, binary)
		case sig := <-st.signals:
			if sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGHUP {
				cancel()
				<-done
				return &exit{128 + int(sig.(syscall.Signal)), fmt.Sprintf("stopped by %v while building %s; nothing was started", sig, s.shown)}
			}
		}
	}
}

// judge says what the compiler's end means.
func (s *source) judge(err error, binary string) error {
	if err != nil {
		return &exit{codeUsage, fmt.Sprintf("%s does not compile, see above; nothing was started", s.shown)}
	}
	info, err := os.Stat(binary)
	if err != nil || info.Mode()&0o111 == 0 {
		return &exit{codeUsage, fmt.Sprintf("%s is a Go package, but not a program: wanted package main", s.shown)}
	}
	return nil
}
