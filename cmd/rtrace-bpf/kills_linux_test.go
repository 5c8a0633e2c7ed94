package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// killsEnv names the number of kills in each test. The default is a few, half of that in a
// short run.
const killsEnv = "RTRACE_KILLS"

func kills(t *testing.T, few int) int {
	t.Helper()
	return rounds(t, killsEnv, few)
}

// rounds returns how often a test does something: the value of an environment variable,
// some by default, half of that without a sweep.
func rounds(t *testing.T, variable string, some int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" && !testutil.Sweep(t) {
		return (some + 1) / 2
	}
	if text == "" {
		return some
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		t.Fatalf("%s=%s is no number", variable, text)
	}
	return n
}

// moment waits for a random time. It orders nothing.
func moment(random *rand.Rand, within time.Duration) {
	<-time.NewTimer(time.Duration(random.Int64N(int64(within)))).C
}

// churning starts the program churn, which checks its blocks, and lets it go. counts is the
// file in which it counts its calls.
func churning(t *testing.T) (child *testutil.Child, counts string) {
	t.Helper()
	counts = filepath.Join(t.TempDir(), "counts")
	return waiting(t, "churn", "8", counts), counts
}

// progress returns when the program churn, which counts its calls in the file counts, has
// ended more calls than at first. No event reports a write to mapped memory, so progress
// reads the file repeatedly.
func progress(t *testing.T, child *testutil.Child, counts string) {
	t.Helper()
	defer testutil.Unstuck(t, child.PID)()
	for _, before := callsIn(t, counts); ; runtime.Gosched() {
		if _, over := callsIn(t, counts); over > before {
			return
		}
		select {
		case <-child.Exited():
			t.Fatalf("the program has ended: %s", child.Stderr())
		default:
		}
	}
}

// callsIn returns how many calls the program churn has begun, and how many have ended, from
// the file in which it counts them.
func callsIn(t *testing.T, counts string) (begun, over uint64) {
	t.Helper()
	b, err := os.ReadFile(counts)
	if err != nil {
		t.Fatal(err)
	}
	for ; len(b) > 0; b = b[16:] {
		begun += binary.NativeEndian.Uint64(b)
		over += binary.NativeEndian.Uint64(b[8:])
	}
	return begun, over
}

// A tracer killed at any moment, while it loads its programs, attaches, records or
// detaches, leaves nothing: the process goes on with the code of its files, the kernel
// frees everything, and the next tracer works.
func TestTracerKilledAtRandom(t *testing.T) {
	child, _ := churning(t)
	child.Go()
	pinned := listed(t, "/sys/fs/bpf")
	random := rand.New(rand.NewPCG(6, 1))
	began := time.Now()
	r := start(t, child, "-q")
	// These are the times that this machine needs.
	arriving := time.Since(began)
	r.Signal(syscall.SIGINT)
	r.Wait()
	leaving := time.Since(began) - arriving
	phases := map[string]int{}
	for i := range kills(t, 6) {
		dir := t.TempDir()
		ready := filepath.Join(dir, "ready")
		args := []string{"-p", fmt.Sprint(child.PID), "-q", "--ready-file", ready, "-o", dir}
		cmd := command(t, args...)
		r := testutil.Start(t, cmd)
		phase := [...]string{"starting", "recording", "detaching"}[i%3]
		if phase != "starting" {
			testutil.WaitFile(t, ready, r)
		}
		within := arriving
		if phase == "detaching" {
			r.Signal(syscall.SIGINT)
			within = leaving
		}
		moment(random, within+1)
		if _, err := os.Stat(ready); err == nil && phase == "starting" {
			phase = "recording"
		}
		made := openObjects(t, r)
		// The tracer may have ended by itself just now.
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		if r.Wait() != 128+int(syscall.SIGKILL) {
			phase += ", ended before"
		}
		phases[phase]++
		made.Gone(t)
		testutil.BecomesOriginal(t, child.PID)
		next := start(t, child, "--duration", "1ms", "-q")
		if code := next.Wait(); code != int(cli.OK) && code != int(cli.Incomplete) {
			t.Errorf("the next tracer ends with %d: %s", code, next.Stderr())
		}
		testutil.CodeOf(t, child.PID).Original(t)
		if t.Failed() {
			t.Fatalf("killed for the %d. time, while %s", i, phase)
		}
	}
	t.Logf("killed while: %v", phases)
	if now := listed(t, "/sys/fs/bpf"); now != pinned {
		t.Errorf("pinned:\n%s\nbefore:\n%s", now, pinned)
	}
	child.Go()
	if report := child.Report(); report.Wrong != 0 || report.Ops["alloc"] != report.Ops["free"] {
		t.Errorf("the program has %d wrong blocks and made %v", report.Wrong, report.Ops)
	}
}

// openObjects returns what a process, which may end at any moment, has open in the kernel.
func openObjects(t *testing.T, r *testutil.Child) testutil.KernelObjects {
	t.Helper()
	select {
	case <-r.Exited():
		return testutil.KernelObjects{}
	default:
		return testutil.KernelObjectsOf(t, r.PID)
	}
}

func listed(t *testing.T, dir string) (names string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		names += path + "\n"
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return names
}

// What a killed tracer wrote can be read up to its end, in the formats that are written
// while recording.
func TestKilledTracersFiles(t *testing.T) {
	for format, suffix := range map[string]string{"sprtrace": "", "jsonl": ".jsonl", "text": ".txt", "swap": ".swap"} {
		t.Run(format, func(t *testing.T) {
			child, _ := churning(t)
			r := start(t, child, "--format", format, "-q")
			path := filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0%s", child.PID, suffix))
			child.Go()
			testutil.WaitSize(t, path, 1<<20, r.Child)
			r.Signal(syscall.SIGKILL)
			if got := r.Wait(); got != 128+int(syscall.SIGKILL) {
				t.Errorf("exit code %d", got)
			}
			in, err := decoder.OpenFile(path, decoder.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			var rec trace.Record
			calls := 0
			for err = in.ReadRecord(&rec); err == nil; err = in.ReadRecord(&rec) {
				if rec.Kind == trace.KindCall {
					calls++
				}
			}
			if !errors.Is(err, trace.ErrTruncated) {
				t.Errorf("after %d calls: %v, want that it is cut", calls, err)
			}
			if calls < 1000 { // 1 MiB contains many more
				t.Errorf("%d calls can be read", calls)
			}
			child.Go()
			child.Succeed()
		})
	}
}

// Whenever the process is killed or executes another program, the tracer ends in order and
// its file is whole: the recorded and the lost calls together are those that the process
// counted, except for one open call of each thread.
func TestTargetKilledAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 2))
	formats := []string{"jsonl", "sprtrace", "jsonl", "text", "jsonl", "mtrc"}
	suffixes := map[string]string{"sprtrace": "", "jsonl": ".jsonl", "text": ".txt", "mtrc": ".mtrc"}
	signals := []syscall.Signal{syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGUSR2}
	for i := range kills(t, len(formats)) {
		format, sig := formats[i%len(formats)], signals[i%len(signals)]
		t.Run(fmt.Sprintf("%d-%s-%s", i, format, sig), func(t *testing.T) {
			child, counts := churning(t)
			r := start(t, child, append([]string{"--format", format}, ample...)...)
			child.Go()
			progress(t, child, counts)
			moment(random, 100*time.Millisecond)
			// The signal goes to the main thread: a program that another thread executes is
			// not traced.
			if err := unix.Tgkill(child.PID, child.PID, sig); err != nil {
				t.Fatal(err)
			}
			want := 128 + int(sig)
			if sig == syscall.SIGUSR2 {
				want = 0 // it executed the program true
			}
			if got := child.Wait(); got != want {
				t.Errorf("the process ends with %d, want %d", got, want)
			}
			code := r.Wait()
			records := load(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0%s", child.PID, suffixes[format])))
			lost := uint64(0)
			for _, rec := range records {
				if rec.Kind == trace.KindLost {
					lost += rec.Lost.Count
				}
			}
			if (code == int(cli.Incomplete)) != (lost > 0) || (code != int(cli.OK) && lost == 0) {
				t.Errorf("exit code %d with %d lost: %s", code, lost, r.Stderr())
			}
			if format == "jsonl" {
				within(t, recordedCalls(records)+lost, counts)
			}
		})
	}
}

// recordedCalls returns the number of calls of the first program. A realloc is recorded as
// a free and an allocation if another thread took its block at once.
func recordedCalls(records []*trace.Record) (n uint64) {
	for _, rec := range records {
		if rec.Kind == trace.KindExec {
			break
		}
		if rec.Kind == trace.KindCall && (rec.Call.Op != trace.OpFree || rec.Call.Function != "realloc") {
			n++
		}
	}
	return n
}

// within checks that a number of calls is at least that of the program's ended calls and at
// most that of the calls that it began.
func within(t *testing.T, calls uint64, counts string) {
	t.Helper()
	begun, over := callsIn(t, counts)
	t.Logf("%d calls, %d begun, %d over", calls, begun, over)
	if calls < over || calls > begun || over == 0 {
		t.Errorf("%d calls recorded or lost; %d begun, %d over", calls, begun, over)
	}
}
