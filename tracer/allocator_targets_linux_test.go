package tracer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// If the file of an allocator was deleted or replaced after it was mapped, the mapped
// file is traced.
func TestAllocatorFiles(t *testing.T) {
	testutil.NeedBPF(t)
	jemalloc, tcmalloc := libraryFile(t, "libjemalloc.so.2"), libraryFile(t, "libtcmalloc_minimal.so.4")
	inside := testutil.Build(t, "every", linked(t, "libjemalloc.a"), "-lm", "-ldl")
	for name, change := range map[string]func(t *testing.T, path string){
		"deleted": func(t *testing.T, path string) { must(t, os.Remove(path)) },
		"replaced": func(t *testing.T, path string) {
			testutil.CopyFile(t, tcmalloc, path+".new")
			must(t, os.Rename(path+".new", path))
		},
	} {
		t.Run("library "+name, func(t *testing.T) {
			lib := filepath.Join(t.TempDir(), "libjemalloc.so.2")
			testutil.CopyFile(t, jemalloc, lib)
			cmd := exec.Command(testutil.Build(t, "every"))
			cmd.Env = append(os.Environ(), "LD_PRELOAD="+lib)
			tracedAfter(t, cmd, "jemalloc", func() { change(t, lib) })
		})
		t.Run("program "+name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "every")
			testutil.CopyFile(t, inside, program)
			tracedAfter(t, exec.Command(program), "jemalloc", func() { change(t, program) })
		})
	}
}

// tracedAfter records a program after a change to it.
func tracedAfter(t *testing.T, cmd *exec.Cmd, kind string, change func()) {
	t.Helper()
	child := testutil.Start(t, cmd)
	child.Ready()
	change()
	r := attachTo(t, child.PID, nil)
	child.Go()
	report := child.Report()
	records := r.end()
	r.whole()
	compare(t, canonical(records), &testutil.Report{Calls: canonicalCalls(report.Calls)})
	if got := serves(r.tracer.Plan(), "malloc").Kind; got != kind {
		t.Errorf("malloc is that of %q, want %q", got, kind)
	}
}

// In a container with its own mounts and process IDs, the paths of the program and its
// allocator do not lead to their files from outside.
func TestAllocatorInContainer(t *testing.T) {
	testutil.NeedBPF(t)
	jemalloc, every := libraryFile(t, "libjemalloc.so.2"), testutil.Build(t, "every")
	installed(t, "unshare")
	dir := t.TempDir()
	const script = `mount -t tmpfs none "$1" && cp "$2" "$1"/every && cp "$3" "$1"/liballocator.so &&
		LD_PRELOAD="$1"/liballocator.so exec "$1"/every`
	child := testutil.Start(t, exec.Command("unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", script, "sh", dir, every, jemalloc))
	child.Ready()
	if found, err := filepath.Glob(filepath.Join(dir, "*")); len(found) != 0 || err != nil {
		t.Fatalf("the container's files are seen from outside: %v, %v", found, err)
	}
	pid := only(t, child.PID)
	r := attachTo(t, pid, nil)
	child.Go()
	report := child.Report()
	records := r.end()
	r.whole()
	for i := range report.Calls {
		report.Calls[i].TID = pid // the container has another number for the thread
	}
	compare(t, canonical(records), &testutil.Report{Calls: canonicalCalls(report.Calls)})
	if a := serves(r.tracer.Plan(), "malloc"); a.Kind != "jemalloc" || a.Path != filepath.Join(dir, "liballocator.so") {
		t.Errorf("malloc is that of %q, %s", a.Kind, a.Path)
	}
}

// only returns the only child of a process.
func only(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	must(t, err)
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must(t, err)
	return child
}

// A Rust program that was not written for this test is traced below glibc's library that
// counts its calls: the counts are those of the trace.
func TestRustProgram(t *testing.T) {
	testutil.NeedBPF(t)
	rg, memusage := installed(t, "rg"), libraryFile(t, "libmemusage.so")
	files := t.TempDir()
	for i := range 20 {
		must(t, os.WriteFile(filepath.Join(files, fmt.Sprint(i)), []byte(strings.Repeat("a needle in it\nnone here\n", 200)), 0o644))
	}
	// The shell waits at the gate and becomes the program; it ends with rg's status. It
	// waits again, so that the probes are attached when rg begins.
	const script = `echo ready >&3; read -r go <&4; exec "$0" -j1 --no-config needle "$1"`
	cmd := exec.Command("sh", "-c", script, rg, files)
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+memusage)
	child := testutil.Start(t, cmd)
	child.Ready()
	r := attachTo(t, child.PID, nil)
	child.Go()
	child.Close() // read returns at the end of the file
	child.Succeed()
	records := r.end()
	r.whole()
	if n := strings.Count(string(child.Output()), "needle"); n != 20*200 {
		t.Errorf("rg found %d lines, want %d", n, 20*200)
	}
	got, execs := map[string]int{}, 0
	for _, rec := range records {
		switch {
		case rec.Kind == trace.KindExec:
			execs++
		case rec.Kind == trace.KindCall && execs > 0:
			got[rec.Call.Function]++
		}
	}
	// memusage also counts failed calls, and does not count frees of null pointers
	// separately.
	for _, function := range []string{"malloc", "calloc", "realloc"} {
		want := counted(t, child.Stderr(), function)
		if got[function] != want || want == 0 && function == "malloc" {
			t.Errorf("%d calls of %s in the trace, %d made", got[function], function, want)
		}
	}
}

// counted returns how often libmemusage counted a function. Its output must be there
// exactly once.
func counted(t *testing.T, text []byte, function string) int {
	t.Helper()
	plain := regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAll(text, nil)
	m := regexp.MustCompile(`(?m)^ *`+function+`\| *(\d+)`).FindAllSubmatch(plain, -1)
	if len(m) != 1 {
		t.Fatalf("%d counts of %s in:\n%.600s", len(m), function, plain)
	}
	n, err := strconv.Atoi(string(m[0][1]))
	must(t, err)
	return n
}

// A compiler driver works in child processes, which are not traced. The driver's own
// calls are, and the children are not disturbed.
func TestDriverAndItsChildren(t *testing.T) {
	testutil.NeedBPF(t)
	installed(t, "as") // virtual machines have g++ without it
	gxx, memusage := installed(t, "g++"), libraryFile(t, "libmemusage.so")
	dir := t.TempDir()
	source, program := filepath.Join(dir, "a.cc"), filepath.Join(dir, "a")
	must(t, os.WriteFile(source, []byte("#include <string>\nint main() { return std::string(7, 'x').size(); }\n"), 0o644))
	const script = `echo ready >&3; read -r go <&4; exec "$0" -o "$1" "$2" 3>&- 4>&-`
	cmd := exec.Command("sh", "-c", script, gxx, program, source)
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+memusage, "MEMUSAGE_PROG_NAME="+filepath.Base(gxx))
	child := testutil.Start(t, cmd)
	child.Ready()
	r := attachTo(t, child.PID, nil)
	child.Go()
	child.Close()
	child.Succeed()
	records := r.end()
	r.whole()
	if err := exec.Command(program).Run(); err == nil || err.Error() != "exit status 7" {
		t.Errorf("the compiled program: %v", err)
	}
	made, execs := 0, 0
	for _, rec := range records {
		if rec.PID != int32(child.PID) {
			t.Fatalf("a record of process %d, but process %d is traced", rec.PID, child.PID)
		}
		switch {
		case rec.Kind == trace.KindExec:
			execs++
		case rec.Kind == trace.KindCall && execs > 0 && rec.Call.Function == "malloc":
			made++
		}
	}
	if want := counted(t, child.Stderr(), "malloc"); made != want || want == 0 || execs != 1 {
		t.Errorf("%d calls of malloc in the trace after %d execs, %d made", made, execs, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
