package testutil

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A run that prepares fills the folder and starts nothing. A later run uses what is there and
// needs no compiler for it.
func TestPrepared(t *testing.T) {
	if programs.dir == "" {
		t.Fatal("Build keeps no programs")
	}
	dir := t.TempDir()
	t.Setenv(preparedDir, dir)
	t.Setenv(preparing, "1")
	const flag = "-DPREPARED"
	path := Build(t, "leak", flag)
	if !strings.HasPrefix(path, dir+"/") {
		t.Errorf("prepared %s, want it in %s", path, dir)
	}
	command := BuildCommand(t, "rtrace-bpf/cmd/rtrace")
	if want := filepath.Join(dir, "go", "rtrace"); command != want {
		t.Errorf("prepared %s, want %s", command, want)
	}
	if got := fatal(func(r *recorder) { Start(r, exec.Command(path)) }); !strings.HasPrefix(got, "skip: ") {
		t.Errorf("a program started, %q", got)
	}

	forget := func() { // like another process
		programs.Lock()
		defer programs.Unlock()
		delete(programs.built, programKey("leak", []string{flag}))
		delete(programs.built, programKey("leak", []string{"-DOTHER"}))
	}
	t.Setenv(preparing, "")
	t.Setenv("CC", "/nonexistent/cc")
	forget()
	if got := Build(t, "leak", flag); got != path {
		t.Errorf("built %s, want %s", got, path)
	}
	if got := fatal(func(r *recorder) { Build(r, "leak", "-DOTHER") }); !strings.Contains(got, "build leak") {
		t.Errorf("message %q for a program that is not prepared", got)
	}
	if got := BuildCommand(t, "rtrace-bpf/cmd/rtrace"); got != command {
		t.Errorf("built %s, want %s", got, command)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	forget()
}

// What would be missing with prepared programs is an error everywhere.
func TestBuiltBeforeTheStart(t *testing.T) {
	Start(t, exec.Command("true"))
	const want = "leak is built after TestBuiltBeforeTheStart started a program"
	got := fatal(func(r *recorder) {
		r.name = t.Name() + "/below"
		Build(r, "leak", "-DLATE")
	})
	if !strings.HasPrefix(got, want) {
		t.Errorf("message %q, want %q", got, want)
	}
}
