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

// killsEnv is how often each test here kills; a few times by default, half as often
// in a short run.
const killsEnv = "RTRACE_KILLS"

func kills(t *testing.T, few int) int {
	t.Helper()
	return rounds(t, killsEnv, few)
}

// rounds is how often a test does something: as an environment variable says, some times
// by default, half as often without a sweep.
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

// moment waits for a moment that nobody chose. It orders nothing.
func moment(random *rand.Rand, within time.Duration) {
	<-time.NewTimer(time.Duration(random.Int64N(int64(within)))).C
}

// churning starts the program that looks after its blocks and lets it go. counts
// is where it counts its calls.
func churning(t *testing.T) (child *testutil.Child, counts string) {
	t.Helper()
	counts = filepath.Join(t.TempDir(), "counts")
	return waiting(t, "churn", "8", counts), counts
}

// progress returns when the program churn, which counts its calls in the file counts, has
// ended more calls than at first. Nothing reports a write to mapped memory, so progress
// looks again and again.
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

// callsIn returns how many calls the program churn has begun, and how many have ended, by
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

// Killed at any moment, be it that it loads its programs, attaches, records or
// detaches, the tracer leaves nothing behind: the process goes on with the code of
// its files, the kernel frees all, and the next tracer gets what it wants.
func TestTracerKilledAtRandom(t *testing.T) {
	child, _ := churning(t)
	child.Go()
	pinned := listed(t, "/sys/fs/bpf")
	random := rand.New(rand.NewPCG(6, 1))
	began := time.Now()
	r := start(t, child, "-q")
	// As long as this machine takes.
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
		// It may have ended by itself just now.
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

// openObjects is what a process that may end any moment has in the kernel.
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

// What a killed tracer had written can be read up to where it ends, in the formats
// that are written while recording.
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
			if calls < 1000 { // 1 MiB are many more
				t.Errorf("%d calls can be read", calls)
			}
			child.Go()
			child.Succeed()
		})
	}
}

// However and whenever the process is killed or becomes another one, the tracer
// ends in order and its file is whole: the calls that are in it or lost are those
// that the process has counted, but for one of each thread that was under way.
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
			// The main thread, as another one's new program would not be traced.
			if err := unix.Tgkill(child.PID, child.PID, sig); err != nil {
				t.Fatal(err)
			}
			want := 128 + int(sig)
			if sig == syscall.SIGUSR2 {
				want = 0 // it became true
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

// recordedCalls counts the calls of the first program. A realloc whose block another
// thread took at once is told as a free and an allocation.
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

// within checks a number of calls against those that a program has begun and ended.
func within(t *testing.T, calls uint64, counts string) {
	t.Helper()
	begun, over := callsIn(t, counts)
	t.Logf("%d calls, %d begun, %d over", calls, begun, over)
	if calls < over || calls > begun || over == 0 {
		t.Errorf("%d calls recorded or lost; %d begun, %d over", calls, begun, over)
	}
}
