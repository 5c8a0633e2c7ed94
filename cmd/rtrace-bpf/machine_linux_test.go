package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/decoder"
	"rtrace-bpf/decoder/swap"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// swapTrace reads the one trace in the command's directory. It returns the records, and the
// trace with the facts of its side file.
func (r *running) swapTrace() ([]*trace.Record, *decoder.Trace) {
	r.t.Helper()
	all, err := filepath.Glob(filepath.Join(r.dir, "rtrace-raw-*-0.swap"))
	if err != nil || len(all) != 1 {
		r.t.Fatalf("traces in the directory: %v, %v", all, err)
	}
	in, err := decoder.OpenFile(all[0], decoder.Options{Strict: true})
	if err != nil {
		r.t.Fatal(err)
	}
	defer in.Close()
	records, err := trace.Load(in)
	if err != nil {
		r.t.Fatal(err)
	}
	return records, in
}

// swapSide returns the facts about SWAP in the side file of an open trace.
func swapSide(t *testing.T, in *decoder.Trace) wire.Side {
	t.Helper()
	side, err := swap.ParseSide(in.Facts)
	if err != nil {
		t.Fatal(err)
	}
	return side
}

// message is a record of a SWAP message that no kind of record represents. It has the
// values of each field by name, in order; a float is its bits.
type message struct {
	*trace.Record
	values map[string][]uint64
	texts  map[string][]string
}

func (m *message) float(name string, i int) float64 {
	return float64(math.Float32frombits(uint32(m.values[name][i])))
}

// messagesOf returns the messages with an ID, and their indices among the records.
func messagesOf(t *testing.T, records []*trace.Record, id uint32, cpus int) (all []message, at []int) {
	t.Helper()
	parser, err := swap.NewParser(swap.Options{CPUs: cpus})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range records {
		if r.Kind != trace.KindOpaque || r.Opaque.ID != id {
			continue
		}
		var f swap.Fields
		m := swap.Message{ID: id, Data: r.Opaque.Data}
		if err := parser.Parse(&m, &f); err != nil || len(f.Tail) > 0 || f.Flawed {
			t.Fatalf("record %d: %v, %d bytes too many", i, err, len(f.Tail))
		}
		x := message{r, map[string][]uint64{}, map[string][]string{}}
		list := ""
		for _, v := range f.Values {
			name := v.Field.Name
			if name == "" {
				name = list + "[]"
			}
			if v.Field.Type == wire.List {
				list = name
			}
			x.values[name] = append(x.values[name], v.Num)
			x.texts[name] = append(x.texts[name], string(v.Text))
		}
		all, at = append(all, x), append(at, i)
	}
	return all, at
}

// readFile returns the text of a file.
func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// kilobytes returns the value of a line of a status file in bytes.
func kilobytes(t *testing.T, text, name string) uint64 {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n"+name+":")
	if !ok {
		t.Fatalf("no %s in %s", name, text)
	}
	n, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// TestSwapProcess compares what SWAP records about a waiting process with /proc, and with
// what the program reports about its files.
func TestSwapProcess(t *testing.T) {
	for _, dialect := range []string{"document", "kernel"} {
		t.Run(dialect, func(t *testing.T) {
			dir := t.TempDir()
			before := time.Now()
			child := waiting(t, "openfiles", dir, "3", "24")
			spawned := time.Now()
			proc := fmt.Sprintf("/proc/%d/", child.PID)
			exe, err := os.Readlink(proc + "exe")
			if err != nil {
				t.Fatal(err)
			}
			tasks, err := os.ReadDir(proc + "task")
			if err != nil {
				t.Fatal(err)
			}
			cmdline := strings.ReplaceAll(strings.TrimSuffix(readFile(t, proc+"cmdline"), "\x00"), "\x00", " ")
			r := start(t, child, "--format", "swap", "--swap-system", "1s", "--swap-dialect", dialect)
			status, rollup := readFile(t, proc+"status"), readFile(t, proc+"smaps_rollup")
			child.Go()
			child.Go()
			report := child.Report()
			r.ends(cli.OK)
			records, in := r.swapTrace()

			i := slices.IndexFunc(records, func(r *trace.Record) bool { return r.Kind == trace.KindProcess })
			p := records[i]
			name := cmdline
			if dialect == "kernel" {
				name = "openfiles"
			}
			started := time.Unix(0, p.Process.Started)
			if p.PID != int32(child.PID) || p.Process.Parent != int32(os.Getpid()) || p.Process.Path != exe || p.Process.Name != name {
				t.Errorf("%+v, want process %d of %d, %s: %s", p.Process, child.PID, os.Getpid(), exe, name)
			}
			// /proc has the time in whole clock ticks.
			if started.Before(before.Add(-20*time.Millisecond)) || started.After(spawned) {
				t.Errorf("started %v, not in %v to %v", started, before, spawned)
			}

			// The files follow the process and its mappings immediately.
			files, at := messagesOf(t, records, wire.ProcessStatusInfo, 0)
			if len(files) != 1 {
				t.Fatalf("%d lists of open files", len(files))
			}
			for _, r := range records[i+1 : at[0]] {
				if r.Kind != trace.KindMapping && r.Kind != trace.KindModule && r.Kind != trace.KindThread && r.Kind != trace.KindRSS {
					t.Errorf("%v between the process and its files", r.Kind)
				}
			}
			var got []testutil.OpenFile
			for i, path := range files[0].texts["path"] {
				if strings.HasPrefix(path, dir) {
					got = append(got, testutil.OpenFile{FD: int(files[0].values["fd"][i]), Size: files[0].values["size"][i], Path: path})
				}
			}
			if !slices.Equal(got, report.Files) || len(got) != 6 {
				t.Errorf("files %+v, want %+v", got, report.Files)
			}
			if tids := files[0].values["tid"]; dialect == "document" && !slices.Equal(slices.Compact(tids), []uint64{uint64(child.PID)}) || dialect == "kernel" && tids != nil {
				t.Errorf("threads of files: %v", tids)
			}

			// The first state of the machine is that at the start, when the process waited.
			side := swapSide(t, in)
			if want := strings.Count(readFile(t, "/proc/stat"), "\ncpu"); side.CPUs != want || len(side.Devices) != 5 {
				t.Errorf("the side file has %d processors and devices %v, want %d", side.CPUs, side.Devices, want)
			}
			all, at := messagesOf(t, records, wire.System, side.CPUs)
			if len(all) == 0 || all[0].Time != p.Time || at[0] < i {
				t.Fatalf("%d states of the machine", len(all))
			}
			s := all[0]
			near := func(what string, got, want, slack uint64) {
				t.Helper()
				if got > want+slack || want > got+slack {
					t.Errorf("%s: %d, want %d", what, got, want)
				}
			}
			near("virtual", s.values["virtual"][0], kilobytes(t, status, "VmSize"), 1<<20)
			near("resident", s.values["resident"][0], kilobytes(t, status, "VmRSS"), 1<<20)
			near("shared", s.values["shared"][0], kilobytes(t, status, "RssFile")+kilobytes(t, status, "RssShmem"), 1<<20)
			near("pss", s.values["pss"][0], kilobytes(t, rollup, "Pss"), 1<<20)
			if s.values["pss"][0] < 24<<20 {
				t.Errorf("pss %d, but 24 MiB are the process's alone", s.values["pss"][0])
			}
			var tids []uint64
			for _, task := range tasks {
				tid, _ := strconv.ParseUint(task.Name(), 10, 32)
				tids = append(tids, tid)
			}
			slices.Sort(tids)
			if !slices.Equal(s.values["tid"], tids) || len(tids) != 4 || s.values["pid"][0] != uint64(child.PID) {
				t.Errorf("threads %v, want %v", s.values["tid"], tids)
			}
			if s.values["total_alloc"][0] != 0 || s.values["load"][0] != 0 || len(s.values["load"]) != 5 || s.values["disk_reads"][0] != 0 {
				t.Errorf("the first state of the machine has what was before: %v", s.values)
			}
			var fs unix.Statfs_t
			if err := unix.Statfs("/", &fs); err != nil {
				t.Fatal(err)
			}
			near("used drive", s.values["total_used_drive_mb"][0], (fs.Blocks-fs.Bfree)*uint64(fs.Frsize)>>20, 2000)
			meminfo := "\n" + readFile(t, "/proc/meminfo")
			total := kilobytes(t, meminfo, "MemTotal")
			near("used memory", s.values["system_memory_used"][0], total-kilobytes(t, meminfo, "MemAvailable"), total/8)
			for _, name := range []string{"wifi", "bt", "gps", "camera", "rssi", "call", "dnet", "energy"} {
				if s.values[name][0] != 0 {
					t.Errorf("%s is %d", name, s.values[name][0])
				}
			}
		})
	}
}

// diskNow returns how many bytes the disks of the machine have read and written, from /sys.
func diskNow(t *testing.T) (read, written uint64) {
	t.Helper()
	all, err := filepath.Glob("/sys/block/*/device")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		f := strings.Fields(readFile(t, filepath.Join("/sys/block", strings.Split(path, "/")[3], "stat")))
		for i, to := range map[int]*uint64{2: &read, 6: &written} {
			n, err := strconv.ParseUint(f[i], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			*to += n * 512
		}
	}
	return read, written
}

// TestSwapSystem checks the states of the machine during a busy process: the loads of the
// process and of its threads over time are the processor time that the process reports, the
// live bytes are those of the calls so far, and the disks do no more than around the
// recording.
func TestSwapSystem(t *testing.T) {
	child := waiting(t, "loop", "2", "60000")
	reads, writes := diskNow(t)
	r := start(t, child, append(ample, "--format", "swap", "--swap-system", "10ms", "--swap-no-stacks")...)
	child.Go()
	report := child.Report()
	r.ends(cli.OK)
	readsAfter, writesAfter := diskNow(t)
	records, in := r.swapTrace()
	side := swapSide(t, in)
	all, at := messagesOf(t, records, wire.System, side.CPUs)
	if len(all) < 3 {
		t.Fatalf("%d states of the machine", len(all))
	}
	n := float64(side.CPUs)
	var used, ofThreads, ofProcessors float64 // ns
	var held, longest float64                 // how long the loads of threads have not changed without being zero, and the longest such time, in ns
	var read, written, live uint64
	blocks, next := map[uint64]uint64{}, 0
	for i, s := range all {
		for ; next < at[i]; next++ {
			if c := &records[next].Call; records[next].Kind == trace.KindCall && c.Op == trace.OpAlloc {
				blocks[c.ID] = c.Size
				live += c.Size
			} else if records[next].Kind == trace.KindCall {
				live -= blocks[c.ID]
				delete(blocks, c.ID)
			}
		}
		if got := s.values["total_alloc"][0]; got != live {
			t.Errorf("message %d: %d bytes are live, want %d", i, got, live)
		}
		threads := len(s.values["tid"])
		for j := range s.values["load"] {
			if load := s.float("load", j); load < 0 || load > 100 {
				t.Errorf("message %d: load %v", i, load)
			}
		}
		if i == 0 {
			continue
		}
		passed := float64(s.Time - all[i-1].Time)
		if passed < float64(10*time.Millisecond) {
			t.Errorf("message %d is %v after the one before", i, time.Duration(passed))
		}
		used += s.float("load", 0) / 100 * passed * n
		for j := range threads {
			ofThreads += s.float("load", 1+j) / 100 * passed * n
		}
		loads := s.values["load"][1:]
		if !slices.Equal(loads, all[i-1].values["load"][1:]) {
			held = 0
		}
		if slices.ContainsFunc(loads, func(load uint64) bool { return load != 0 }) {
			held += passed
		}
		longest = max(longest, held)
		for j := range side.CPUs {
			load := s.float("cpu_load_percent[]", j)
			if load < 0 || load > 100 {
				t.Errorf("message %d: load %v of processor %d", i, load, j)
			}
			ofProcessors += load / 100 * passed
		}
		read += s.values["disk_sectors_read"][0]
		written += s.values["disk_sectors_written"][0]
	}
	for _, r := range records {
		if r.Kind == trace.KindCall && r.Time < all[0].Time {
			t.Errorf("a call at %d is before the start", r.Time)
		}
	}
	// An idle machine writes the last state at most a period before the end. The threads
	// use little time before and after the loop.
	want := float64(report.CPUNs)
	t.Logf("%d states; the threads used %.0f ms; recorded are %.0f ms of the process, %.0f of threads, %.0f of processors",
		len(all), want/1e6, used/1e6, ofThreads/1e6, ofProcessors/1e6)
	check := func(what string, got, more float64) {
		if got < want*0.6 || got > want*1.15+50e6+more {
			t.Errorf("load of the %s: %.0f ms, want about %.0f ms, and up to %.0f ms more", what, got/1e6, want/1e6, more/1e6)
		}
	}
	check("process", used, 0)
	// If reading threads takes long, they are read seldom. Until then they keep their last
	// load, even when they are idle.
	check("threads", ofThreads, 2*longest)
	if ofProcessors < want*0.5 {
		t.Errorf("load of the processors: %.0f ms, want at least %.0f ms", ofProcessors/1e6, want/1e6)
	}
	if read > readsAfter-reads || written > writesAfter-writes {
		t.Errorf("the disks read %d and wrote %d, in truth at most %d and %d", read, written, readsAfter-reads, writesAfter-writes)
	}
}

// TestSwapLeaks checks that the report of --swap-lsan contains the leaks that the program
// reports, and that the trace names the report.
func TestSwapLeaks(t *testing.T) {
	child := waiting(t, "leak")
	r := start(t, child, "--format", "swap", "--swap-lsan")
	child.Go()
	report := child.Report()
	r.ends(cli.OK)
	records, _ := r.swapTrace()
	all, _ := messagesOf(t, records, wire.LSAN, 0)
	if len(all) != 1 || all[0].values["status"][0] != 2 || all[0].PID != int32(child.PID) {
		t.Fatalf("%d messages about leaks", len(all))
	}
	text := readFile(t, filepath.Join(r.dir, all[0].texts["message"][0]))
	if !strings.HasPrefix(text, fmt.Sprintf("Not freed when the recording of process %d (", child.PID)) || !strings.Contains(text, ": 7 blocks, 28000 bytes.\n") ||
		strings.Contains(text, "reachable") || strings.Contains(text, "lost") {
		t.Errorf("%s", text)
	}
	for function, size := range report.Leaks {
		_, stack, ok := strings.Cut(text, fmt.Sprintf("\n%d bytes in 1 blocks from\n", size))
		stack, _, _ = strings.Cut(stack, "\n\n")
		if !ok || !strings.Contains(stack, " "+function+" at ") || !strings.Contains(stack, " main at ") {
			t.Errorf("%d bytes of %s: %s", size, function, stack)
		}
	}
}

// If the trace is not a file in a directory, there is no place for the report.
func TestSwapLeaksWithoutFile(t *testing.T) {
	child := waiting(t, "leak")
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	end, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	cmd := command(t, "-p", fmt.Sprint(child.PID), "--format", "swap", "--swap-lsan", "-o", fifo)
	res := finish(t, cmd)
	if res.code != int(cli.Failed) || !strings.Contains(res.stderr, "--swap-lsan writes files to the directory of the trace") {
		t.Errorf("exit code %d: %s", res.code, res.stderr)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
	child.Close()
}

// TestSwapBesideIsNotInTheWay checks that the calls in a SWAP trace are those of the
// program when it also contains states of the machine and a report.
func TestSwapBesideIsNotInTheWay(t *testing.T) {
	child := waiting(t, "threads_cxx", "20")
	r := start(t, child, "--format", "swap", "--swap-system", "10ms", "--swap-lsan")
	child.Go()
	report := child.Report()
	r.ends(cli.OK)
	r.says("lost: 0")
	records, _ := r.swapTrace()
	checkSwap(t, records, report, true)
	if text := string(bytes.TrimSpace(r.Stderr())); strings.Contains(text, "state of the machine") {
		t.Errorf("%s", text)
	}
}
