package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

func TestSymbols(t *testing.T) {
	var s symbols
	for _, text := range []string{"malloc=0000000000401136", "free=0x4011f0", "malloc=401136"} {
		if err := s.Set(text); err != nil {
			t.Error(err)
		}
	}
	if got, want := s.String(), "free=4011f0 malloc=401136"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, text := range []string{"", "malloc", "malloc=", "=401136", "malloc=main", "malloc=0", "malloc=-1", "free=1"} {
		if s.Set(text) == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// TestChooseAllocator checks with --dry-run which functions are probed in a program with
// three allocators when each is chosen alone.
func TestChooseAllocator(t *testing.T) {
	testutil.NeedBPF(t)
	for _, test := range []struct {
		args  []string
		names []string // of the functions
		left  string   // what else --dry-run prints
	}{
		{nil, []string{"free", "je_calloc", "je_free", "je_malloc", "je_realloc", "malloc"}, ""},
		{[]string{"--allocator", "glibc"}, []string{"free", "malloc"}, "prefix:je_: not chosen"},
		{[]string{"--allocator", "prefix:own_"}, []string{"own_free", "own_malloc"}, "glibc: not chosen"},
		{[]string{"--library", "PROGRAM"}, []string{"je_calloc", "je_free", "je_malloc", "je_realloc"}, "glibc: not chosen"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			program := testutil.Build(t, "prefixes")
			for i := range test.args {
				test.args[i] = strings.Replace(test.args[i], "PROGRAM", program, 1)
			}
			child := testutil.Spawn(t, program, "10")
			child.Ready()
			pid := fmt.Sprint(child.PID)
			dry := finish(t, command(t, append([]string{"-p", pid, "--dry-run"}, test.args...)...))
			if dry.code != 0 || !strings.Contains(dry.stdout, test.left) {
				t.Errorf("exit code %d, %q is not in:\n%s%s", dry.code, test.left, dry.stdout, dry.stderr)
			}
			child.Close()
			var seen []string
			for line := range strings.SplitSeq(dry.stdout, "\n") {
				f := strings.Fields(line)
				if len(f) > 5 && (strings.HasSuffix(f[0], "alloc") || strings.HasSuffix(f[0], "free")) && slices.Contains(test.names, f[0]) {
					seen = append(seen, f[0])
				}
			}
			slices.Sort(seen)
			if !slices.Equal(seen, test.names) {
				t.Errorf("probed are %q, want %q in:\n%s", seen, test.names, dry.stdout)
			}
		})
	}
}

// TestStrippedHint checks the hint about a static program without symbols.
func TestStrippedHint(t *testing.T) {
	testutil.NeedBPF(t)
	strip := testutil.Installed(t, "strip")
	program := filepath.Join(t.TempDir(), "loop")
	if out, err := exec.Command(strip, "-o", program, testutil.Build(t, "loop", "-static")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	child := testutil.Spawn(t, program, "1")
	child.Ready()
	got := finish(t, command(t, "-p", fmt.Sprint(child.PID), "-o", os.DevNull))
	if got.code != int(cli.Failed) || !strings.Contains(got.stderr, "is static and has no symbols") ||
		!strings.Contains(got.stderr, "--symbol malloc=ADDR --symbol free=ADDR") {
		t.Errorf("exit code %d\n%s", got.code, got.stderr)
	}
}
