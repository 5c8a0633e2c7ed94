package machine

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// worker starts a process that waits. work lets it use a processor for a while and returns when
// it waits again.
func worker(t *testing.T) (pid int, work func()) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "while read x; do i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; echo; done")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return cmd.Process.Pid, func() {
		t.Helper()
		if _, err := in.Write([]byte{'\n'}); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

// cpuUsed returns the processor time of a process according to /proc/PID/stat.
func cpuUsed(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks int
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// The loads of a busy process, of its thread, and as one of the others, match the processor
// time in /proc/PID/stat.
func TestLoads(t *testing.T) {
	busy, work := worker(t)
	of, err := New(busy)
	if err != nil {
		t.Fatal(err)
	}
	defer of.Close()
	beside, err := New(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	var r, s Reading
	read := func() {
		t.Helper()
		if err := errors.Join(of.Read(&r), beside.Read(&s)); err != nil {
			t.Fatal(err)
		}
	}
	// The readings are somewhere between these times; on a busy machine they may be anywhere.
	outside, usedOutside := time.Now(), cpuUsed(t, busy)
	read()
	if r.Target.Percent != 0 || len(r.Others) != 0 || r.Disks != (Disks{}) || r.Network != (Network{}) || slices.Max(r.Loads) != 0 {
		t.Errorf("the first reading has what was since the one before: %+v", r)
	}
	began, used := time.Now(), cpuUsed(t, busy)
	work()
	passed, ran := time.Since(began), cpuUsed(t, busy)-used
	read()
	passedOutside, ranOutside := time.Since(outside), cpuUsed(t, busy)-usedOutside
	// The stat file is exact to a tick at both ends.
	const ticks = 20 * time.Millisecond
	n := float64(len(r.Loads))
	low := 100 * float64(ran-ticks) / float64(passedOutside) / n
	high := 100 * float64(ranOutside+ticks) / float64(passed) / n
	within := func(what string, load float32) {
		t.Helper()
		if float64(load) < low || float64(load) > high {
			t.Errorf("load %s: %.2f %%, want %.2f to %.2f", what, load, low, high)
		}
	}
	within("of the process", r.Target.Percent)
	if len(r.Target.Threads) != 1 || r.Target.Threads[0].ID != busy {
		t.Fatalf("threads: %+v", r.Target.Threads)
	}
	within("of its thread", r.Target.Threads[0].Percent)
	i := slices.IndexFunc(s.Others, func(l Load) bool { return l.ID == busy })
	if i < 0 {
		t.Fatalf("the process is not among the others: %+v", s.Others)
	}
	within("as one of the others", s.Others[i].Percent)
	var sum, most float32
	for _, l := range r.Loads {
		sum += l
		most = max(most, l)
	}
	if float64(sum)/n < low*0.8 || most > 100 {
		t.Errorf("loads of the processors: %v", r.Loads)
	}
	if slices.ContainsFunc(r.Others, func(l Load) bool { return l.ID == busy }) {
		t.Error("the target is one of the others")
	}
}

// Sizes are between those that /proc shows before and after.
func TestTargetSizes(t *testing.T) {
	ballast := make([]byte, 64<<20)
	for i := range ballast {
		ballast[i] = 1
	}
	m, err := New(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var r Reading
	if err := m.Read(&r); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	status := func(name string) uint64 {
		n, ok := parseKilobytes(text, name)
		if !ok {
			t.Fatalf("no %s in %s", name, text)
		}
		return n
	}
	const slack = 16 << 20 // the runtime continues to run, and counters lag
	near := func(what string, got, want uint64) {
		t.Helper()
		if got > want+slack || want > got+slack {
			t.Errorf("%s: %d, want about %d", what, got, want)
		}
	}
	near("virtual", r.Target.Virtual, status("VmSize:"))
	near("resident", r.Target.Resident, status("VmRSS:"))
	near("shared", r.Target.Shared, status("RssFile:")+status("RssShmem:"))
	if r.Target.PSS < uint64(len(ballast)) || r.Target.PSS > r.Target.Resident+slack {
		t.Errorf("pss %d of %d resident bytes, of which %d are ours alone", r.Target.PSS, r.Target.Resident, len(ballast))
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil || len(tasks) < len(r.Target.Threads) || len(r.Target.Threads) < 2 {
		t.Errorf("%d threads, now %d, %v", len(r.Target.Threads), len(tasks), err)
	}
	if r.MemoryUsed == 0 || r.DriveUsed == 0 {
		t.Errorf("memory %d, drive %d", r.MemoryUsed, r.DriveUsed)
	}
	runtime.KeepAlive(ballast)
}

// A process that has ended is reported as gone, before and after its parent has waited for it.
func TestGone(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m, err := New(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var r Reading
	if err := m.Read(&r); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := m.Read(&r); !errors.Is(err, ErrGone) {
		t.Errorf("a reading of a process that has ended: %v", err)
	}
	if _, err := New(cmd.Process.Pid); !errors.Is(err, ErrGone) {
		t.Errorf("a meter of a process that has ended: %v", err)
	}
}

// BenchmarkRead measures a reading of this process and of the others of this machine.
func BenchmarkRead(b *testing.B) {
	m, err := New(os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	var r Reading
	b.ReportAllocs()
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := m.Read(&r); err != nil {
			b.Fatal(err)
		}
		// Everything is due, as after a period.
		m.slower.due, m.target.sizes.due, m.target.slower.due, m.others.slower.due, m.devices.slower.due = 0, 0, 0, 0, 0
	}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		b.Fatal(err)
	}
	cpu := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(cpu)/float64(b.N), "cpu-ns/op")
}
