package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// missed is what the summary says of the calls that functions.c leaves by longjmp.
func missed(threads, rounds int) string { return fmt.Sprintf("missed return %d", threads*rounds*4) }

// toldOf reads what the trace of a process tells.
func toldOf(t *testing.T, r *running, pid int) *told {
	t.Helper()
	return readTold(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.swap", pid)))
}

// A process that may make but a few system calls, or dies, is told of to its last call,
// and makes as many as without a tracer; or it is refused where the kernel's return
// probes would run into the filter, and lives on.
func TestNamedFunctionsUnderSeccomp(t *testing.T) {
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		mechanisms := []string{"auto", "perf"}
		if !testutil.Sweep(t) {
			mechanisms = mechanisms[:1]
		}
		for _, sandbox := range []string{"probes", "others", "strict"} {
			for _, mechanism := range mechanisms {
				t.Run(sandbox+"-"+mechanism, func(t *testing.T) { sandboxedCalls(t, build, sandbox, mechanism) })
			}
		}
	})
}

func sandboxedCalls(t *testing.T, build testutil.Builder, sandbox, mechanism string) {
	const rounds = 30
	alone := waitingOf(t, build, "functions", "1", fmt.Sprint(rounds), sandbox)
	alone.Go()
	alone.Succeed()

	child := waitingOf(t, build, "functions", "1", fmt.Sprint(rounds), sandbox)
	r, recorded := tryToRecord(t, child, slices.Concat([]string{"--mechanism", mechanism}, namedFunctions)...)
	child.Go()
	child.Succeed()
	want := written(t, child.Output())
	if len(want[child.PID]) != len(written(t, alone.Output())[alone.PID]) {
		t.Errorf("traced it has made %d calls, alone %d", len(want[child.PID]), len(written(t, alone.Output())[alone.PID]))
	}
	if !recorded {
		r.ends(cli.Failed)
		r.says("return probes")
		t.Logf("refused: %s", r.Stderr())
		return
	}
	r.ends(cli.Incomplete) // the calls that were left
	r.says(missed(1, rounds))
	sameCalls(t, toldOf(t, r, child.PID).calls, want)
}

// The main thread may end before the others: what they call then is told, too. Perf
// events go with the main thread (docs/loss.md): then all is told that it called itself.
// What ends a thread unwinds its stack, so that a function which jumps through a pointer is
// refused in such a process.
func TestNamedFunctionsWithoutMainThread(t *testing.T) {
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		// Static, so that other tracers of the machine have nothing to do with it.
		static := func(t testing.TB, name string, flags ...string) string {
			return build(t, name, append(flags, "-static")...)
		}
		for _, mechanism := range []string{"multi", "perf"} {
			t.Run(mechanism, func(t *testing.T) { leaderlessCalls(t, static, mechanism) })
		}
	})
}

func leaderlessCalls(t *testing.T, build testutil.Builder, mechanism string) {
	const threads, rounds, refused = 2, 30, "--function=:through(pd)d"
	child := waitingOf(t, build, "functions", fmt.Sprint(threads), fmt.Sprint(rounds), "leaderless")
	res := finish(t, command(t, "-p", fmt.Sprint(child.PID), "--format", "swap", "-o", t.TempDir(), "--dry-run", refused))
	if res.code != int(cli.Failed) || !strings.Contains(res.stderr, "jumps through a pointer") {
		t.Errorf("exit code %d: %s", res.code, res.stderr)
	}
	others := slices.DeleteFunc(slices.Clone(namedFunctions), func(f string) bool { return f == refused })
	r, recorded := tryToRecord(t, child, slices.Concat([]string{"--mechanism", mechanism}, others)...)
	child.Go()
	child.Succeed()
	if !recorded {
		r.ends(cli.Failed)
		r.says("not supported by this kernel")
		t.Skipf("SKIPPED-KERNEL: no --mechanism %s", mechanism)
	}
	r.ends(cli.Incomplete)
	got, want := toldOf(t, r, child.PID).calls, written(t, child.Output())
	if len(want) != threads+1 || len(want[child.PID]) < rounds*50 {
		t.Fatalf("the program wrote %d threads", len(want))
	}
	for tid, lines := range want {
		want[tid] = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, " through ") })
	}
	if mechanism == "perf" {
		for tid := range want {
			if tid != child.PID {
				delete(want, tid)
				delete(got, tid)
			}
		}
	} else {
		r.says(missed(threads+1, rounds))
	}
	sameCalls(t, got, want)
}

// tryToRecord starts a recording that may be refused.
func tryToRecord(t *testing.T, child *testutil.Child, args ...string) (r *running, recorded bool) {
	t.Helper()
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	cmd := command(t, append([]string{"-p", fmt.Sprint(child.PID), "--ready-file", ready, "--format", "swap"}, args...)...)
	cmd.Dir = dir
	r = &running{Child: testutil.Start(t, cmd), t: t, dir: dir}
	return r, testutil.FileOrEnd(t, ready, r.Child)
}

// A tracer in a container tells the threads by the numbers that they have in there.
func TestNamedFunctionsInPIDNamespace(t *testing.T) {
	testutil.NeedBPF(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	out, ready := filepath.Join(dir, "trace.swap"), filepath.Join(dir, "ready")
	const script = `program=$1 exe=$2 out=$3 ready=$4; shift 4; "$program" 2 30 & p=$!; "$exe" -q -p $p -o "$out" --ready-file "$ready" --format swap "$@"; s=$?; wait $p || exit 1; [ $s = 3 ]`
	cmd := exec.Command("unshare", slices.Concat([]string{"--pid", "--fork", "--mount-proc", "sh", "-c", script, "sh", testutil.Build(t, "functions"), exe, out, ready}, namedFunctions)...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	child := testutil.Start(t, cmd)
	child.Ready()
	testutil.WaitFile(t, ready, child)
	child.Go()
	child.Succeed()
	want := written(t, child.Output())
	for tid := range want {
		if tid > 100 {
			t.Errorf("thread %d, want its number in the namespace", tid)
		}
	}
	if len(want) != 2 {
		t.Fatalf("the program wrote %d threads", len(want))
	}
	sameCalls(t, readTold(t, out).calls, want)
}

// A tracer outside of the container tells them by the numbers that they have for it.
func TestNamedFunctionsOfContainer(t *testing.T) {
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		testutil.NeedBPF(t)
		const threads, rounds = 2, 30
		child := testutil.Start(t, exec.Command("unshare", "--pid", "--fork", "--mount-proc", build(t, "functions"), fmt.Sprint(threads), fmt.Sprint(rounds)))
		child.Ready()
		pid := onlyChild(t, child.PID)
		dir := t.TempDir()
		ready := filepath.Join(dir, "ready")
		cmd := command(t, slices.Concat([]string{"-p", fmt.Sprint(pid), "--ready-file", ready, "--format", "swap"}, namedFunctions)...)
		cmd.Dir = dir
		r := startIn(t, cmd, dir, ready)
		child.Go()
		child.Succeed()
		r.ends(cli.Incomplete)
		r.says(missed(threads, rounds))
		got, want := toldOf(t, r, pid).calls, written(t, child.Output())
		if len(want) != threads || len(got) != threads {
			t.Fatalf("calls of %d threads, want %d of %d", len(got), threads, len(want))
		}
		// Each thread passes an address of its own, so that its calls tell which it is.
		inside := map[int]string{}
		for tid, lines := range want {
			inside[tid] = strings.Join(lines, "\n")
		}
		for _, tid := range slices.Sorted(maps.Keys(got)) {
			if _, ok := want[tid]; ok && tid < 100 {
				t.Errorf("thread %d is told by its number in the container", tid)
			}
			lines := strings.Join(got[tid], "\n")
			maps.DeleteFunc(inside, func(_ int, said string) bool { return said == lines })
		}
		if len(inside) > 0 {
			t.Errorf("the calls of %d threads are not those that they wrote down", len(inside))
		}
	})
}

// onlyChild returns the child of a process.
func onlyChild(t *testing.T, pid int) (child int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := fmt.Sscan(string(text), &child); n != 1 || err != nil {
		t.Fatalf("the children of %d are %q", pid, text)
	}
	return child
}
