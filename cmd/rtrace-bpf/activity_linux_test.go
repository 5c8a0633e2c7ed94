package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/decoder"
	decoderswap "rtrace-bpf/decoder/swap"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// deed is a message about what a thread did in addition to allocations.
type deed struct {
	id uint32
	pc uint64 // of a sample
	decoderswap.Event
}

// deeds returns the messages of each thread, in order.
func deeds(t *testing.T, path string, pid int) map[int][]deed {
	t.Helper()
	in, err := decoder.OpenFile(path, decoder.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	records, err := trace.Load(in)
	if err != nil {
		t.Fatal(err)
	}
	side := swapSide(t, in)
	var parser decoderswap.Parser
	var fields decoderswap.Fields
	all := map[int][]deed{}
	var last int64
	for _, r := range records {
		if r.Kind != trace.KindOpaque || r.Opaque.ID == wire.Stack || r.Opaque.ID == wire.ProcessStatusInfo {
			continue
		}
		if int(r.PID) != pid {
			t.Fatalf("message %#x of process %d, want %d", r.Opaque.ID, r.PID, pid)
		}
		if r.Time < last {
			t.Errorf("message %#x is %d ns before the one before it", r.Opaque.ID, last-r.Time)
		}
		last = r.Time
		d := deed{id: r.Opaque.ID}
		if d.id == wire.Sample {
			d.pc = binary.LittleEndian.Uint64(r.Opaque.Data[4:])
		}
		if e, ok := parser.Event(&decoderswap.Message{ID: d.id, Data: r.Opaque.Data}, &fields, nil); ok {
			d.Event = e
			if d.Function = side.Syscalls[e.PC]; d.Function == "" {
				t.Fatalf("the side file does not name the system call %#x", e.PC)
			}
		}
		all[int(r.TID)] = append(all[int(r.TID)], d)
	}
	return all
}

// isMark reports whether a deed is the program's mark n.
func isMark(d *deed, n int) bool {
	return d.id == wire.SyscallEntry && d.Function == "lseek" && d.Args == fmt.Sprintf("d:-1 x:%d d:0", 0x5a5a00+n)
}

// between returns the deeds after one mark and before another.
func between(t *testing.T, list []deed, from, to int) []deed {
	t.Helper()
	first := slices.IndexFunc(list, func(d deed) bool { return isMark(&d, from) })
	last := slices.IndexFunc(list, func(d deed) bool { return isMark(&d, to) })
	if first < 0 || last < first {
		t.Fatalf("marks %d and %d of a thread: messages %d and %d of %d", from, to, first, last, len(list))
	}
	return list[first+1 : last]
}

func countOf(list []deed, id uint32) (n uint64) {
	for i := range list {
		if list[i].id == id {
			n++
		}
	}
	return n
}

// TestSwapActivity checks what a SWAP trace contains about threads in addition to
// allocations: each system call with its arguments and result, as many context switches as
// the kernel counts, and samples in the code that used the processor.
func TestSwapActivity(t *testing.T) {
	testutil.EachWidth(t, swapActivity)
}

const (
	activityRounds = 40
	activityTime   = 300 * time.Millisecond
	samplePeriod   = 10 * time.Millisecond
)

func swapActivity(t *testing.T, build testutil.Builder) {
	child := waitingOf(t, build, "activity", activityArgs...)
	r := start(t, child, allActivity...)
	child.Go()
	child.Succeed()
	r.ends(cli.OK)
	r.says("lost: 0")
	checkActivity(t, child, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.swap", child.PID)))
}

var (
	activityArgs = []string{"3", fmt.Sprint(activityRounds), fmt.Sprint(activityTime.Milliseconds())}
	allActivity  = []string{"--format", "swap", "--swap-sample", samplePeriod.String(), "--swap-switches", "--swap-syscalls", "all"}
)

// checkActivity compares a trace with the output of the program activity, which has ended.
func checkActivity(t *testing.T, child *testutil.Child, path string) {
	t.Helper()
	all := deeds(t, path, child.PID)
	var hotStart, hotEnd uint64
	threads := 0
	for line := range strings.Lines(string(child.Output())) {
		var tid int
		var switches, cpu, runs uint64
		if n, _ := fmt.Sscanf(line, "hot %x %x", &hotStart, &hotEnd); n == 2 {
			continue
		}
		if n, _ := fmt.Sscanf(line, "thread %d %d %d %d", &tid, &switches, &cpu, &runs); n != 4 {
			t.Fatalf("the program prints %q", line)
		}
		threads++
		list := all[tid]
		delete(all, tid)
		checkCalls(t, between(t, list, 2, 3), child.PID)
		checkSwitches(t, list, switches, runs)
		checkSamples(t, between(t, list, 5, 6), cpu, hotStart, hotEnd)
	}
	if threads != 3 {
		t.Errorf("%d threads, want 3", threads)
	}
	delete(all, child.PID)
	if len(all) > 0 {
		t.Errorf("messages of %d unknown threads", len(all))
	}
}

// checkCalls compares the system calls of a thread with those that the program makes.
func checkCalls(t *testing.T, list []deed, pid int) {
	t.Helper()
	round := []string{
		fmt.Sprintf(`openat d:-100 s:"/" d:%d d:0 = FD`, unix.O_DIRECTORY),
		"read d:FD p:ADDRESS x:1 = x:-21",
		"close d:FD = x:0",
		`renameat2 d:-1 s:"from nowhere" d:-1 s:"to nowhere" d:0 = x:-9`,
		"faccessat d:-100 p:0x1 d:4 = x:-14",
		`faccessat d:-100 s:"" d:4 = x:-2`,
		fmt.Sprintf("kill d:%d d:0 = x:0", pid),
		"msgctl d:-1 d:0 p:0x0 = x:-22",
		"shutdown d:-1 d:2 = x:-9",
	}
	var got []string
	var fd string
	for i := range list {
		d := &list[i]
		switch d.id {
		case wire.SyscallEntry:
			args := strings.Fields(d.Args)
			switch d.Function {
			case "read":
				args[1] = "p:ADDRESS"
				fallthrough
			case "close":
				if args[0] == "d:"+fd {
					args[0] = "d:FD"
				}
			}
			text := d.Function + " " + strings.Join(args, " ")
			if strings.HasPrefix(text, "renameat2") {
				text = d.Function + " " + d.Args // texts in it have spaces
			}
			got = append(got, text)
		case wire.SyscallExit:
			if len(got) == 0 || !strings.HasPrefix(got[len(got)-1], d.Function+" ") {
				if d.Function == "lseek" {
					continue // of the mark
				}
				t.Fatalf("the end of %s does not follow its beginning", d.Function)
			}
			result := d.Result
			if d.Function == "openat" {
				fd = strings.TrimPrefix(result, "x:")
				result = "FD"
			}
			got[len(got)-1] += " = " + result
		}
	}
	if len(got) != activityRounds*len(round) {
		t.Errorf("%d system calls, want %d", len(got), activityRounds*len(round))
	}
	for i := range min(len(got), activityRounds*len(round)) {
		want := round[i%len(round)]
		if strings.HasPrefix(want, "msgctl") && strings.HasSuffix(got[i], "x:-38") {
			continue // a kernel without System V IPC
		}
		if got[i] != want {
			t.Fatalf("system call %d is %q, want %q", i, got[i], want)
		}
	}
}

// checkSwitches compares how often a thread left its processor and got one again with the
// kernel's counts, counted and runs. The program read these counts between the marks 1 and
// 2 and again between 3 and 4, so their difference lies between the numbers within the
// inner and within the outer marks. It returns how often the thread left its processor
// without having got one before.
func checkSwitches(t *testing.T, list []deed, counted, runs uint64) (missing uint64) {
	t.Helper()
	inner, outer := between(t, list, 2, 3), between(t, list, 1, 4)
	least, most := countOf(inner, wire.ContextSwitchEntry), countOf(outer, wire.ContextSwitchEntry)
	if counted < least || counted > most || least < activityRounds/2 {
		t.Errorf("the thread left its processor %d to %d times, the kernel counts %d", least, most, counted)
	}
	away := false
	for i := range list {
		switch list[i].id {
		case wire.ContextSwitchEntry:
			if away {
				missing++
			}
			away = true
		case wire.ContextSwitchExit:
			if !away && i > 0 {
				t.Fatal("the thread gets a processor that it has")
			}
			away = false
		}
	}
	// The thread runs at each mark, so it got a processor as often as it left one. The
	// kernel's count leaves out wake-ups of a thread that had not left the run queue yet
	// (sched_info_arrive).
	if runs > 0 && (runs+1+least/20 < least || runs > most) {
		t.Errorf("the thread left its processor %d to %d times, it got one %d times by the kernel's count", least, most, runs)
	}
	return missing
}

// checkSamples checks the samples of a thread that computed for cpu nanoseconds in the code
// from start to end. Each interval on a processor can have one sample more or less than its
// length in periods; a hypervisor may swallow some.
func checkSamples(t *testing.T, list []deed, cpu, start, end uint64) {
	t.Helper()
	pieces := countOf(list, wire.ContextSwitchExit) + 1
	n := countOf(list, wire.Sample)
	fit := cpu / uint64(samplePeriod)
	if n > fit+pieces || n+pieces < fit/2 {
		t.Errorf("%d samples of %d ns of computing in %d pieces", n, cpu, pieces)
	}
	outside := 0
	for i := range list {
		if d := &list[i]; d.id == wire.Sample && (d.pc < start || d.pc >= end) {
			outside++
		}
	}
	if outside > 1+int(n)/10 { // the thread also reads the clock
		t.Errorf("%d of %d samples are outside of where the thread computes", outside, n)
	}
}

// TestSwapActivityAlone checks that a trace contains only the activity that the options
// select.
func TestSwapActivityAlone(t *testing.T) {
	for flag, ids := range map[string][]uint32{
		"":                         {},
		"--swap-switches":          {wire.ContextSwitchEntry, wire.ContextSwitchExit},
		"--swap-syscalls=file,ipc": {wire.SyscallEntry, wire.SyscallExit},
		"--swap-sample=1ms":        {wire.Sample},
	} {
		t.Run(flag, func(t *testing.T) {
			child := waiting(t, "activity", "1", "3", "50")
			args := []string{"--format", "swap"}
			if flag != "" {
				args = append(args, flag)
			}
			r := start(t, child, args...)
			child.Go()
			child.Succeed()
			r.ends(cli.OK)
			seen := map[uint32]bool{}
			for _, list := range deeds(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.swap", child.PID)), child.PID) {
				for i := range list {
					d := &list[i]
					seen[d.id] = true
					if d.id == wire.SyscallEntry && d.Function != "openat" && d.Function != "msgctl" && d.Function != "faccessat" && d.Function != "renameat2" && d.Function != "exit" {
						t.Errorf("%s is of no class that is wanted", d.Function)
					}
				}
			}
			for _, id := range ids {
				if !seen[id] {
					t.Errorf("no message %#x", id)
				}
				delete(seen, id)
			}
			if len(seen) > 0 {
				t.Errorf("other messages: %v", seen)
			}
		})
	}
}

// TestSwapActivityRefused checks that impossible options are refused with a message.
func TestSwapActivityRefused(t *testing.T) {
	for line, want := range map[string]string{
		"--swap-sample 10ms":                      "go with --format swap",
		"--swap-files":                            "go with --format swap",
		"--format jsonl --swap-switches":          "go with --format swap",
		"--format nettrace --swap-syscalls file":  "go with --format swap",
		"--format swap --dotnet --swap-switches":  "not with --dotnet",
		"--format swap --swap-sample 1s":          "the time between samples, 1s, is not within 1ms to 100ms",
		"--format swap --swap-sample 10us":        "the time between samples, 10µs, is not within 1ms to 100ms",
		"--format swap --swap-syscalls file,disk": `unknown class "disk" of system calls (known: file, ipc, process, signal, network, descriptor, all)`,
	} {
		res := finish(t, command(t, append([]string{"-p", "1"}, strings.Fields(line)...)...))
		if res.code != int(cli.Usage) || !strings.Contains(res.stderr, want) {
			t.Errorf("%s: exit code %d, %q; want %d and %q", line, res.code, res.stderr, cli.Usage, want)
		}
	}
}

// TestSwapActivityInPIDNamespace runs in a PID namespace, where threads have other numbers
// than in the kernel.
func TestSwapActivityInPIDNamespace(t *testing.T) {
	testutil.NeedBPF(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	out, ready := filepath.Join(dir, "trace.swap"), filepath.Join(dir, "ready")
	const script = `"$0" 2 40 50 & p=$!; "$1" -q -p $p -o "$2" --ready-file "$3" --format swap --swap-switches --swap-syscalls all --swap-sample 1ms; s=$?; wait $p; exit $s`
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script, testutil.Build(t, "activity"), exe, out, ready)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	child := testutil.Start(t, cmd)
	child.Ready()
	testutil.WaitFile(t, ready, child)
	child.Go()
	child.Succeed()
	records := load(t, out)
	pid := int(records[0].PID)
	if pid <= 0 || pid > 10 {
		t.Errorf("process %d in the trace, want its number in the namespace", pid)
	}
	all := deeds(t, out, pid)
	threads := 0
	for line := range strings.Lines(string(child.Output())) {
		var tid int
		var switches, cpu, runs uint64
		if n, _ := fmt.Sscanf(line, "thread %d %d %d %d", &tid, &switches, &cpu, &runs); n != 4 {
			continue
		}
		threads++
		checkSwitches(t, all[tid], switches, runs)
		if countOf(all[tid], wire.Sample) == 0 {
			t.Errorf("no samples of thread %d", tid)
		}
	}
	if threads != 2 {
		t.Errorf("%d threads, want 2", threads)
	}
}
