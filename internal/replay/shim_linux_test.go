package replay_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/replay"
	"rtrace-bpf/internal/testutil"
)

// prepare compiles a replay of p.
func prepare(t testing.TB, p *replay.Program) *replay.Runner {
	t.Helper()
	r, err := replay.Prepare(t.Context(), t.TempDir(), p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// build compiles a C file with gcc, or CC.
func build(t testing.TB, source, name string, flags ...string) string {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	to := filepath.Join(t.TempDir(), name)
	args := append([]string{"-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", to, source}, flags...)
	if text, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", cc, strings.Join(args, " "), err, text)
	}
	return to
}

// shim compiles the malloc library that logs, and returns it as a malloc.
func shim(t testing.TB, flags ...string) replay.Malloc {
	t.Helper()
	return replay.Malloc{Name: "shim", Path: build(t, "testdata/shim.c", "shim.so", append(flags, "-shared", "-fPIC", "-fno-builtin")...)}
}

// logOf makes the shim log its calls into a file with room for n of them, and
// returns a function that reads the log. Each block has a unique address in it.
func logOf(t testing.TB, n int) func() []call {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, int64(8+48*(n+1000))); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REPLAY_LOG", path)
	functions := []string{"malloc", "calloc", "realloc", "free", "memalign", "posix_memalign", "aligned_alloc"}
	return func() []call {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		number := func(i int) uint64 { return binary.LittleEndian.Uint64(data[8*i:]) }
		calls := make([]call, number(0))
		for i := range calls {
			at := 1 + 6*i
			calls[i] = call{
				thread: int(number(at)), function: functions[number(at+1)],
				old: int(number(at + 2)), new: int(number(at + 3)), size: number(at + 4), align: number(at + 5),
			}
		}
		return calls
	}
}

// replayed removes the calls of malloc by pthread_create before the replay: a
// table for each thread.
func replayed(t testing.TB, calls []call, threads int) []call {
	t.Helper()
	for i, c := range calls[:threads-1] {
		if c.thread != 0 || c.function != "calloc" {
			t.Fatalf("call %d of %d before the replay: %+v", i, threads-1, c)
		}
	}
	return calls[threads-1:]
}

// ordered checks that each call on a block follows the one that made the block.
func ordered(t testing.TB, calls []call) {
	t.Helper()
	made := map[int]bool{}
	for i, c := range calls {
		if c.old != 0 && !made[c.old] {
			t.Fatalf("call %d, %+v, is on a block that does not exist", i, c)
		}
		if c.new != 0 {
			made[c.new] = true
		}
		if c.old != 0 {
			delete(made, c.old)
		}
	}
}

// A replay makes exactly the calls of the trace: in order per thread, with the
// same arguments, on the right blocks, after the calls they depend on.
func TestCalls(t *testing.T) {
	m := shim(t)
	byHand := newMaker()
	for i, f := range []string{"malloc", "calloc", "realloc", "memalign", "posix_memalign", "aligned_alloc"} {
		byHand.alloc(i%3, f, uint64(1+i)<<12, uint64(100*i))
	}
	byHand.alloc(1, "malloc", 0x10000, 5<<30) // its size takes an extra word
	byHand.alloc(2, "posix_memalign", 0x11000, 5<<30)
	for i := range 3 {
		byHand.move((i+1)%3, uint64(1+i)<<12, uint64(101+i)<<12, 1000)
		byHand.free((i+2)%3, uint64(101+i)<<12)
	}
	for _, tt := range []struct {
		name    string
		made    *maker
		threads int
		touch   replay.Touch
	}{
		{"by hand", byHand, 3, replay.TouchNone},
		{"one thread", random(1, 1, 20_000, 300), 1, replay.TouchFirst},
		{"two threads", random(2, 2, 20_000, 2000), 2, replay.TouchAll},
		{"five threads", random(3, 5, 20_000, 20), 5, replay.TouchFirst},
		{"many threads", random(4, 60, 20_000, 500), 60, replay.TouchFirst},
	} {
		for _, order := range []replay.Order{replay.OrderDependencies, replay.OrderTrace} {
			read := logOf(t, len(tt.made.calls))
			p := program(t, order, tt.made.records)
			run, err := prepare(t, p).Run(t.Context(), m, tt.touch)
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			calls := replayed(t, read(), tt.threads)
			compare(t, calls, tt.made.calls)
			ordered(t, calls)
			if order == replay.OrderTrace {
				for i := range calls {
					if calls[i].thread != tt.made.calls[i].thread {
						t.Fatalf("%s: call %d is of thread %d, want %d", tt.name, i, calls[i].thread, tt.made.calls[i].thread)
					}
				}
			}
			if run.Failed != 0 || run.Wall == 0 || run.CPU == 0 || tt.threads == 1 && run.Live != p.Stats.PeakBytes {
				t.Errorf("%s: %+v; %d bytes live", tt.name, run, p.Stats.PeakBytes)
			}
		}
	}
}

// Traces of all kinds of random threads.
func TestRandomCalls(t *testing.T) {
	m := shim(t)
	for seed := range uint64(12) {
		threads := 1 + int(seed)%6
		made := random(100+seed, threads, 3000, 1+int(seed*seed*7))
		read := logOf(t, len(made.calls))
		p := program(t, replay.Order(seed%2), made.records)
		if _, err := prepare(t, p).Run(t.Context(), m, replay.TouchFirst); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		calls := replayed(t, read(), threads)
		compare(t, calls, made.calls)
		ordered(t, calls)
	}
}

// The compiler's race detector finds no data race in the C program.
func TestRaces(t *testing.T) {
	binary := build(t, "program/replay.c", "replay", "-fsanitize=thread", "-ldl")
	for seed := range uint64(4) {
		made := random(200+seed, 2+2*int(seed), 20_000, 10+300*int(seed))
		runner := prepare(t, program(t, replay.Order(seed%2), made.records))
		_, file := runner.Files()
		cmd := exec.Command(binary, file, "all")
		cmd.Env = append(os.Environ(), "TSAN_OPTIONS=halt_on_error=1 exitcode=66")
		if text, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(text), "failed 0\n") {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
	}
}

// Both compilers compile the C files without warnings.
func TestCompilers(t *testing.T) {
	for _, cc := range []string{"gcc", "clang"} {
		testutil.Installed(t, cc)
		t.Setenv("CC", cc)
		build(t, "program/replay.c", "replay", "-ldl", "-pedantic")
		shim(t, "-DNULL_MALLOC")
	}
}
