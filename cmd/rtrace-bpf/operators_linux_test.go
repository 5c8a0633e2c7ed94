package main

import (
	"path/filepath"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// Every format that has names of functions has those of operators, by default those of new.
func TestOperators(t *testing.T) {
	testutil.NeedBPF(t)
	const (
		newName    = "operator new(unsigned long)"
		deleteName = "operator delete(void*, unsigned long)"
	)
	for name, test := range map[string]struct {
		args         []string
		alloc, freed string
	}{
		"default": {nil, newName, "free"},
		"events":  {[]string{"--depth", "0"}, newName, "free"},
		"all":     {[]string{"--operators", "all"}, newName, deleteName},
		"new":     {[]string{"--operators", "new"}, newName, "free"},
		"none":    {[]string{"--operators", "none"}, "malloc", "free"},
		"text":    {[]string{"--operators", "all", "--format", "text"}, newName, deleteName},
		"jsonl":   {[]string{"--operators", "all", "--format", "jsonl"}, newName, deleteName},
	} {
		t.Run(name, func(t *testing.T) {
			child := waiting(t, "loop_cxx", "1", "100")
			r := start(t, child, test.args...)
			child.Go()
			child.Succeed()
			r.ends(cli.OK)
			all, err := filepath.Glob(filepath.Join(r.dir, "rtrace-raw-*-0*"))
			if err != nil || len(all) == 0 {
				t.Fatalf("no trace: %v", err)
			}
			records := load(t, all[0])
			if a, f := count(records, test.alloc), count(records, test.freed); a != 100 || f != 100 {
				t.Errorf("%d calls of %s and %d of %s, want 100 each", a, test.alloc, f, test.freed)
			}
		})
	}
}

func TestOperatorsFlagIsChecked(t *testing.T) {
	got := finish(t, command(t, "-p", "1", "--operators", "some"))
	if want := "rtrace-bpf: --operators some: not one of new, all, none\n"; got.code != int(cli.Usage) || got.stderr[:min(len(want), len(got.stderr))] != want {
		t.Errorf("exit code %d, %q", got.code, got.stderr)
	}
}
