package replay_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"rtrace-bpf/internal/replay"
	"rtrace-bpf/internal/testutil"
)

// With a preloaded library the calls go to that library, and the rows name it.
// The memory is roughly the size of the blocks.
func TestCompare(t *testing.T) {
	testutil.Extra(t, "other allocators")
	jemalloc, err := replay.FindMalloc("jemalloc")
	if err != nil {
		t.Fatal(err, "(make need-test-all installs it)")
	}
	m := newMaker()
	const blocks, size = 2000, 10_000
	for i := range blocks {
		m.alloc(i%2, "malloc", uint64(1+i)<<12, size)
	}
	p := program(t, replay.OrderDependencies, m.records)
	var progress []int
	rows, err := prepare(t, p).Compare(t.Context(), []replay.Malloc{{Name: "glibc"}, jemalloc}, replay.TouchFirst, 3,
		func(done, of int) { progress = append(progress, done, of) })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(progress, []int{0, 6, 1, 6, 2, 6, 3, 6, 4, 6, 5, 6}) {
		t.Errorf("progress %d", progress)
	}
	for i, library := range []string{"libc.so", "libjemalloc.so"} {
		if len(rows[i].Runs) != 3 {
			t.Fatalf("%d runs", len(rows[i].Runs))
		}
		for _, r := range rows[i].Runs {
			if !strings.HasPrefix(filepath.Base(r.Library), library) || r.Failed != 0 {
				t.Errorf("%s: %+v", rows[i].Name, r)
			}
			if g := r.Growth(); g < blocks*size*9/10 || g > blocks*size*2 {
				t.Errorf("%s: %d bytes for blocks of %d", rows[i].Name, g, blocks*size)
			}
			if r.Faults < blocks*size/4096*9/10 || r.Live > blocks*size {
				t.Errorf("%s: %+v", rows[i].Name, r)
			}
		}
	}
}

// Only touched memory counts.
func TestTouch(t *testing.T) {
	m := newMaker()
	const size = 64 << 20
	m.alloc(0, "malloc", 0x1000, size)
	m.move(0, 0x1000, 0x1000, 2*size)
	r := prepare(t, program(t, replay.OrderDependencies, m.records))
	for touch, want := range map[replay.Touch]uint64{replay.TouchNone: 0, replay.TouchFirst: 2 * size, replay.TouchAll: 2 * size} {
		run, err := r.Run(t.Context(), replay.Malloc{Name: "glibc"}, touch)
		if err != nil {
			t.Fatal(err)
		}
		if g := run.Growth(); g < want || g > want+4<<20 || run.Live != 2*size {
			t.Errorf("%s: %d bytes, want %d; %+v", touch, g, want, run)
		}
	}
}

// Calls that return no memory are counted, and the replay continues.
func TestFailures(t *testing.T) {
	m := newMaker()
	m.alloc(0, "malloc", 0x1000, 1<<47)
	m.free(0, 0x1000)
	m.alloc(0, "malloc", 0x1000, 1000)
	m.move(0, 0x1000, 0x2000, 1<<47)
	m.move(0, 0x2000, 0x2000, 2000)
	m.alloc(0, "posix_memalign", 0x3000, 1<<47)
	run, err := prepare(t, program(t, replay.OrderDependencies, m.records)).Run(t.Context(), replay.Malloc{Name: "glibc"}, replay.TouchAll)
	if err != nil || run.Failed != 3 || run.Live != 2000 {
		t.Errorf("%+v, %v", run, err)
	}
}

// A library without a malloc, or with half of one, is rejected.
func TestWrongLibrary(t *testing.T) {
	m := newMaker()
	m.alloc(0, "memalign", 0x1000, 100)
	r := prepare(t, program(t, replay.OrderDependencies, m.records))
	empty := filepath.Join(t.TempDir(), "empty.c")
	if err := os.WriteFile(empty, []byte("int nothing;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	logOf(t, 100)
	for _, tt := range []struct{ name, path, want string }{
		{"no malloc", build(t, empty, "empty.so", "-shared", "-fPIC"), `replaying with x: malloc is from .*/libc\.so\.6, not from .*/empty\.so`},
		{"no memalign", shim(t, "-DNO_MEMALIGN").Path, `replaying with x: exit status 1: memalign is from .*/libc\.so\.6, but malloc is from .*/shim\.so`},
		{"no library", empty, `replaying with x: malloc is from .*, not from .*/empty\.c`},
	} {
		_, err := r.Run(t.Context(), replay.Malloc{Name: "x", Path: tt.path}, replay.TouchNone)
		if err == nil || !match(tt.want, err.Error()) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	t.Setenv("LD_PRELOAD", shim(t).Path) // not for the C library's row
	if run, err := r.Run(t.Context(), replay.Malloc{Name: "glibc"}, replay.TouchNone); err != nil || strings.Contains(run.Library, "shim") {
		t.Errorf("%+v, %v", run, err)
	}
}

// A replay of two threads that wait for each other for ever ends with its
// context.
func TestCancel(t *testing.T) {
	made := random(1, 2, 10, 1)
	r := prepare(t, program(t, replay.OrderDependencies, made.records))
	_, file := r.Files()
	writeWords(t, file, header(2, 0, 2, 2), 1|1<<5|1<<32, 0, 1|1<<32, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := r.Run(ctx, replay.Malloc{Name: "glibc"}, replay.TouchNone); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// header returns the header of a program's file.
func header(threads, slots uint64, words ...uint64) []uint64 {
	return append([]uint64{0x79616c7065727472, 1, threads, slots}, words...)
}

func writeWords(t testing.TB, path string, head []uint64, words ...uint64) {
	t.Helper()
	var b bytes.Buffer
	for _, w := range append(head, words...) {
		b.Write(binary.LittleEndian.AppendUint64(nil, w))
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The C program rejects files that no Builder writes.
func TestBadPrograms(t *testing.T) {
	made := newMaker()
	made.alloc(0, "malloc", 0x1000, 1)
	r := prepare(t, program(t, replay.OrderDependencies, made.records))
	c, file := r.Files()
	const (
		end, wait, free, malloc, memalign = 0, 1, 2, 3, 6
		wide                              = (1<<32 - 1) << 32
	)
	for _, tt := range []struct {
		name  string
		head  []uint64
		words []uint64
		want  string
	}{
		{"good", header(1, 1, 3), []uint64{malloc | 5<<32, free, end}, ""},
		{"good, long", header(1, 1, 4), []uint64{memalign | wide, 5, 64, end}, ""},
		{"empty", nil, nil, "is not a program for this version"},
		{"magic", append([]uint64{1}, header(1, 1, 1)[1:]...), []uint64{end}, "is not a program for this version"},
		{"version", []uint64{header(1, 1)[0], 2, 1, 1, 1}, []uint64{end}, "is not a program for this version"},
		{"no thread", header(0, 1), nil, "is too short"},
		{"more threads than words", header(1<<60, 1, 1), []uint64{end}, "is too short"},
		{"more slots than words count", header(1, 1<<27+1, 1), []uint64{end}, "is too short"},
		{"fewer words than announced", header(1, 1, 2), []uint64{end}, "is too short"},
		{"no end", header(1, 1, 1), []uint64{malloc}, "bad program: word 1 of thread 0"},
		{"no words", header(1, 1, 0), nil, "bad program: word 0 of thread 0"},
		{"end in a size", header(1, 1, 2), []uint64{malloc | wide, end}, "bad program: word 2 of thread 0"},
		{"end in an alignment", header(1, 1, 2), []uint64{memalign, end}, "bad program: word 2 of thread 0"},
		{"words after the end", header(1, 1, 2), []uint64{end, end}, "bad program: word 0 of thread 0"},
		{"code", header(1, 1, 2), []uint64{9, end}, "bad program: word 0 of thread 0"},
		{"slot", header(2, 1, 1, 2), []uint64{end, malloc | 1<<5, end}, "bad program: word 0 of thread 1"},
		{"thread waited for", header(1, 1, 2), []uint64{wait | 1<<5, end}, "bad program: word 0 of thread 0"},
		{"word waited for", header(2, 1, 2, 1), []uint64{wait | 1<<5 | 2<<32, end, end}, "bad program: word 0 of thread 0"},
	} {
		writeWords(t, file, tt.head, tt.words...)
		text, err := exec.CommandContext(t.Context(), c, file, "none").CombinedOutput()
		if (err == nil) != (tt.want == "") || !strings.Contains(string(text), tt.want) {
			t.Errorf("%s: %v, %s", tt.name, err, text)
		}
	}
	for _, args := range [][]string{{}, {file}, {file, "some"}, {file, "none", "x"}} {
		if text, err := exec.CommandContext(t.Context(), c, args...).CombinedOutput(); err == nil || !strings.Contains(string(text), "usage: ") {
			t.Errorf("%s: %v, %s", args, err, text)
		}
	}
}

func TestNoCompiler(t *testing.T) {
	made := random(1, 1, 10, 1)
	p := program(t, replay.OrderDependencies, made.records)
	for cc, want := range map[string]string{
		"no-such-cc":     `no C compiler: exec: "no-such-cc": executable file not found in \$PATH; install one .* or set CC`,
		"gcc -no-option": `compiling the replay: exit status 1: gcc: error: unrecognized command-line option .*`,
	} {
		t.Setenv("CC", cc)
		if _, err := replay.Prepare(t.Context(), t.TempDir(), p); err == nil || !match(want, err.Error()) {
			t.Errorf("%s: %v", cc, err)
		}
	}
}

func match(pattern, text string) bool {
	return regexp.MustCompile("(?s)^" + pattern + "$").MatchString(text)
}

func TestAvailableMemory(t *testing.T) {
	if n, err := replay.AvailableMemory(); err != nil || n < 1<<20 || n > 1<<50 {
		t.Errorf("%d, %v", n, err)
	}
}
