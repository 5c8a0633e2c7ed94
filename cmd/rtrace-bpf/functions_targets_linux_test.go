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

// missed returns the text of the summary about calls that functions.c leaves with longjmp.
func missed(threads, rounds int) string { return fmt.Sprintf("missed return %d", threads*rounds*4) }

// functionsOf reads the trace of a process.
func functionsOf(t *testing.T, r *running, pid int) *functionTrace {
	t.Helper()
	return readFunctions(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.swap", pid)))
}

// TestFunctionTracingUnderSeccomp traces processes that die if they make other system calls
// than a few. Either all their calls are traced, and they make as many as without a tracer,
// or they are refused because the kernel's return probes would violate the filter, and live
// on.
func TestFunctionTracingUnderSeccomp(t *testing.T) {
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
	r.ends(cli.Incomplete) // the ends of calls that longjmp left are missing
	r.says(missed(1, rounds))
	sameCalls(t, functionsOf(t, r, child.PID).calls, want)
}

// TestFunctionTracingWithoutMainThread checks a process whose main thread ends before the
// others. Their later calls are traced with uprobe_multi. Perf events end with the main
// thread (docs/loss.md), so only its own calls are compared. The end of a thread unwinds
// its stack, so a function that jumps through a pointer is refused in such a process.
func TestFunctionTracingWithoutMainThread(t *testing.T) {
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		// The program is static, so that other tracers of this machine do not affect it.
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
	got, want := functionsOf(t, r, child.PID).calls, written(t, child.Output())
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

// tryToRecord starts a recording that may be refused, and reports whether it began.
func tryToRecord(t *testing.T, child *testutil.Child, args ...string) (r *running, recorded bool) {
	t.Helper()
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	cmd := command(t, append([]string{"-p", fmt.Sprint(child.PID), "--ready-file", ready, "--format", "swap"}, args...)...)
	cmd.Dir = dir
	r = &running{Child: testutil.Start(t, cmd), t: t, dir: dir}
	return r, testutil.FileOrEnd(t, ready, r.Child)
}

// A tracer in a container numbers threads as the container does.
func TestFunctionTracingInPIDNamespace(t *testing.T) {
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
	sameCalls(t, readFunctions(t, out).calls, want)
}

// A tracer outside a container uses the numbers that threads have there.
func TestFunctionTracingOfContainer(t *testing.T) {
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
		got, want := functionsOf(t, r, pid).calls, written(t, child.Output())
		if len(want) != threads || len(got) != threads {
			t.Fatalf("calls of %d threads, want %d of %d", len(got), threads, len(want))
		}
		// Each thread passes its own address, so its calls identify it.
		inside := map[int]string{}
		for tid, lines := range want {
			inside[tid] = strings.Join(lines, "\n")
		}
		for _, tid := range slices.Sorted(maps.Keys(got)) {
			if _, ok := want[tid]; ok && tid < 100 {
				t.Errorf("thread %d has its number in the container", tid)
			}
			lines := strings.Join(got[tid], "\n")
			maps.DeleteFunc(inside, func(_ int, printed string) bool { return printed == lines })
		}
		if len(inside) > 0 {
			t.Errorf("the calls of %d threads are not those that they wrote down", len(inside))
		}
	})
}

// onlyChild returns the child of a process that has one.
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
