package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"

	"rtrace-bpf/internal/cli"
)

const (
	// extremesVariable names the traces that the child of TestExtremes reads.
	extremesVariable = "RTRACE_EXTREMES"
	// extremesMemory is the writable memory in bytes that a subcommand may map for a trace
	// of a few lines.
	extremesMemory = 384 << 20
	// extremesOutput is the number of bytes that it may print or write to a file.
	extremesOutput = 24 << 20
	// Many points take half of the time of all subcommands, in each format the same. So all formats
	// but one have few.
	manyPoints, fewPoints = "100000", "1000"
)

// extremeRecord is a record of jsonl. Numbers are texts, because some are too large for a
// reader of JSON.
type extremeRecord struct {
	kind string
	keys map[string]any
}

// extremeCall is a call of a trace with numbers at their limits.
type extremeCall struct {
	op             string
	time           int64
	id, size       uint64
	tid            int64
	seq            uint64
	old, entryTime uint64
	stack          []uint64
	more           map[string]any
}

func (c extremeCall) record(n int) extremeRecord {
	hex := func(v uint64) string { return fmt.Sprintf("%#x", v) }
	if c.stack == nil {
		c.stack = []uint64{0x401010, 0x401020}
	}
	if c.tid == 0 {
		c.tid = 8
	}
	if c.seq == 0 {
		c.seq = uint64(n + 1)
	}
	function := map[string]string{"alloc": "malloc", "free": "free", "move": "realloc"}[c.op]
	keys := map[string]any{
		"time": c.time, "pid": 7, "tid": c.tid, "seq": c.seq, "op": c.op, "function": function, "resource": 1,
		"id": hex(c.id), "size": c.size, "stack_end": "complete",
	}
	var stack []string
	for _, frame := range c.stack {
		stack = append(stack, hex(frame))
	}
	keys["stack"] = stack
	if c.op == "move" {
		keys["old_id"], keys["entry_time"] = hex(c.old), c.entryTime
	}
	maps.Copy(keys, c.more)
	return extremeRecord{"call", keys}
}

// extremeTrace returns the text of a trace.
func extremeTrace(t *testing.T, clock string, records ...extremeRecord) []byte {
	t.Helper()
	begin := []extremeRecord{
		{"header", map[string]any{"arch": "x86_64", "pointer_size": 8, "clock": clock}},
		{"process", map[string]any{"pid": 7, "name": "prog", "path": "/nonesuch/prog"}},
		{"resource", map[string]any{"pid": 7, "id": 1, "type": "memory"}},
		{"context", map[string]any{"pid": 7, "id": 1, "name": "phase"}},
		{"attachment", map[string]any{"pid": 7, "name": "maps", "path": "maps"}},
	}
	text := []byte(`{"format":"rtrace-jsonl","version":1}` + "\n")
	for _, r := range append(begin, records...) {
		keys := maps.Clone(r.keys)
		keys["kind"] = r.kind
		line, err := json.Marshal(keys)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, line...), '\n')
	}
	return text
}

// extremeTraces are small traces whose numbers are at their limits.
func extremeTraces(t *testing.T) map[string][]byte {
	const last, first = math.MaxInt64, math.MinInt64
	traces := make(map[string][]byte)
	add := func(name, clock string, calls ...extremeCall) {
		var records []extremeRecord
		for n, c := range calls {
			records = append(records, c.record(n))
		}
		traces[name] = extremeTrace(t, clock, records...)
	}
	for name, times := range map[string][]int64{
		"last": {1, last}, "first and last": {first, last}, "first": {first, first + 1, -1}, "none": {0, 0, 0}, "backwards": {last, 1, 2, first},
		"near the last": {last - 3, last - 2, last - 1, last}, "far": {1, 1 << 62, last - 1}, "negative": {-3, -2, -1}, "around zero": {-1, 1},
	} {
		clocks := []string{"monotonic"}
		if slices.Contains(times, last) {
			clocks = append(clocks, "day", "wall")
		}
		for _, clock := range clocks {
			var calls []extremeCall
			for n, at := range times {
				calls = append(calls, extremeCall{op: "alloc", time: at, id: uint64(n+1) << 12, size: 16})
			}
			calls = append(calls, extremeCall{op: "free", time: times[len(times)-1], id: 1 << 12})
			add("times "+name+" "+clock, clock, calls...)
		}
	}
	const now = int64(1e9)
	for name, sizes := range map[string][]uint64{
		"largest": {math.MaxUint64, math.MaxUint64}, "2^63": {1 << 63, 1 << 63, 1 << 63}, "2^63-1": {math.MaxInt64, 1, 2}, "none": {0, 0}, "mixed": {0, 1, math.MaxUint64, 1 << 62, 7},
	} {
		var calls []extremeCall
		for n, size := range sizes {
			calls = append(calls, extremeCall{op: "alloc", time: now + int64(n), id: uint64(n+1) << 12, size: size})
		}
		calls = append(calls, extremeCall{op: "free", time: now * 2, id: 1 << 12}, extremeCall{op: "move", time: now * 3, id: 9 << 12, old: 2 << 12, size: sizes[0], entryTime: uint64(now)})
		add("sizes "+name, "monotonic", calls...)
	}
	for name, ids := range map[string][]uint64{
		"ends": {0, math.MaxUint64}, "near the end": {math.MaxUint64 - 15, math.MaxUint64 - 4096}, "middle": {1 << 63, math.MaxInt64}, "everywhere": {1, 1 << 20, 1 << 32, 1 << 47, 1 << 63, math.MaxUint64 - 1},
	} {
		for _, size := range []uint64{1, 4096, 1 << 40, math.MaxUint64} {
			var calls []extremeCall
			for n, id := range ids {
				calls = append(calls, extremeCall{op: "alloc", time: now + int64(n), id: id, size: size})
			}
			calls = append(calls, extremeCall{op: "move", time: now * 2, id: ids[1], old: ids[0], size: size, entryTime: math.MaxInt64}, extremeCall{op: "free", time: now * 3, id: ids[1]})
			add(fmt.Sprintf("addresses %s, size %d", name, size), "monotonic", calls...)
		}
	}
	add("threads", "monotonic",
		extremeCall{op: "alloc", time: now, id: 1 << 12, size: 16, tid: math.MaxInt32}, extremeCall{op: "alloc", time: now, id: 2 << 12, size: 16, tid: math.MinInt32},
		extremeCall{op: "alloc", time: now, id: 3 << 12, size: 16, tid: -1, more: map[string]any{"thread": uint64(math.MaxUint64), "cpu": math.MaxInt32}})
	add("numbers of calls", "monotonic",
		extremeCall{op: "alloc", time: now, id: 1 << 12, size: 16, seq: math.MaxUint64}, extremeCall{op: "alloc", time: now, id: 2 << 12, size: 16, seq: 1 << 63},
		extremeCall{op: "free", time: now, id: 1 << 12, seq: math.MaxUint64}, extremeCall{op: "alloc", time: now, id: 3 << 12, size: 1, seq: math.MaxInt64, more: map[string]any{"index": uint64(math.MaxUint64), "context": uint32(math.MaxUint32), "line": math.MaxInt32}})
	add("frames", "monotonic",
		extremeCall{op: "alloc", time: now, id: 1 << 12, size: 16, stack: []uint64{math.MaxUint64, 0, 1 << 63}}, extremeCall{op: "alloc", time: now, id: 2 << 12, size: 16, stack: []uint64{math.MaxUint64, math.MaxUint64}},
		extremeCall{op: "alloc", time: now, id: 3 << 12, size: 16, stack: []uint64{0}})
	area := func(kind, start, end, offset string) extremeRecord {
		return extremeRecord{kind, map[string]any{"time": now, "pid": 7, "path": "/nonesuch/prog", "start": start, "end": end, "offset": offset}}
	}
	const high = "0xffffffffffffffff"
	call := func(n int, id uint64) extremeRecord {
		return extremeCall{op: "alloc", time: now + int64(n), id: id, size: 4096}.record(n)
	}
	other := func(kind string, keys map[string]any) extremeRecord {
		keys["time"], keys["pid"] = now, 7
		return extremeRecord{kind, keys}
	}
	traces["mappings"] = extremeTrace(t, "monotonic",
		area("mapping", "0x0", high, "0x0"), area("mapping", high, "0x0", high), call(0, 1<<12), area("mapping", "0x8000000000000000", "0x7fffffffffffffff", "0x0"),
		call(1, math.MaxUint64), area("unmapping", "0x0", high, "0x0"), area("mapping", "0x400000", high, high), call(2, 2<<12))
	traces["growth"] = extremeTrace(t, "monotonic",
		other("heapgrow", map[string]any{"address": "0x0", "size": uint64(math.MaxUint64)}), other("heapgrow", map[string]any{"address": high, "size": uint64(math.MaxUint64)}), call(0, 1<<12),
		other("heapgrow", map[string]any{"address": "0x8000000000000000", "size": uint64(1 << 63)}), other("heapgrow", map[string]any{"address": "0x1000", "size": 4096, "internal": true}), call(1, 1<<63))
	for name, heap := range map[string][2]string{"whole": {"0x0", high}, "turned": {high, "0x0"}, "at the end": {high, high}} {
		keys := map[string]any{"bottom": heap[0], "top": heap[1]}
		for _, key := range []string{"arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"} {
			keys[key] = uint64(math.MaxUint64)
		}
		traces["heap "+name] = extremeTrace(t, "monotonic", call(0, 1<<12), call(1, math.MaxUint64-4095), other("heapinfo", keys))
	}
	traces["losses"] = extremeTrace(t, "monotonic",
		call(0, 1<<12), other("lost", map[string]any{"count": uint64(math.MaxUint64), "reason": "ring full", "since": int64(math.MaxInt64)}),
		other("lost", map[string]any{"count": uint64(math.MaxUint64), "reason": "ring full", "since": int64(math.MinInt64)}), call(1, 2<<12))
	traces["samples"] = extremeTrace(t, "monotonic",
		other("sample", map[string]any{"name": "cpu", "weight": uint64(math.MaxUint64), "stack": []string{high}, "stack_end": "complete"}),
		other("sample", map[string]any{"name": "cpu", "weight": uint64(math.MaxUint64), "stack": []string{high}, "stack_end": "complete"}),
		other("function", map[string]any{"name": "f()", "start": "0x0", "end": high}), other("function", map[string]any{"name": "g()", "start": high, "end": "0x0"}), call(0, 1<<12),
		other("event", map[string]any{"provider": "p", "name": "e", "id": math.MaxUint32}))
	counted := other("resource", map[string]any{"id": math.MaxInt32, "type": "file", "refcount": true})
	sampled := other("resource", map[string]any{"id": 2, "type": "sampled", "sampled": true})
	traces["resources"] = extremeTrace(t, "monotonic", counted, sampled, other("resource", map[string]any{"id": uint32(math.MaxUint32), "type": "x"}),
		extremeCall{op: "alloc", time: now, id: 1, size: math.MaxUint64, more: map[string]any{"resource": math.MaxInt32}}.record(0),
		extremeCall{op: "alloc", time: now, id: 1, size: math.MaxUint64, more: map[string]any{"resource": 2}}.record(1),
		extremeCall{op: "alloc", time: now, id: 1, size: math.MaxUint64, more: map[string]any{"resource": 2}}.record(2))
	return traces
}

// extremeCommands are the subcommands that read traces, with flags. FILE is the
// trace, OUT a file that does not exist.
const extremeCommands = `
info FILE
info --json FILE
report -o OUT.html FILE
leaks FILE
leaks --json --by size FILE
leaks --blocks --min-age 1s FILE
leaks --to 292y FILE
leaks --from 1s --to 2s FILE
top FILE
top --json --by thread FILE
top --by size --sort peak FILE
diff FILE FILE
diff --from 1s FILE
diff --json --from 1 --to 2 FILE
timeline FILE
timeline -x time FILE
timeline -x time --points ` + manyPoints + ` --csv FILE
timeline -x time -f svg FILE
timeline --lifetimes FILE
timeline --lifetimes -x time FILE
timeline --by thread -x time FILE
timeline --by function FILE
timeline -t -a -l -c -s -f text FILE
timeline -t -a -l -c -s -x event -f text FILE
timeline -t -a -l -c -s -g -o OUT FILE
timeline -t -a -l -c -s --data OUT -f text FILE
timeline -t -a -l -c -s --legacy -f text FILE
timeline -t -a -l -c -s --legacy --data OUT -o OUT2 FILE
timeline -a -S 1 -f text FILE
timeline -a -S 9223372036854 -f text FILE
timeline -a -f text --filter-time +0-+1 FILE
timeline -l -f text -L 1 --filter-size 1- FILE
heapmap -o OUT.svg FILE
heapmap --at peak -o OUT.html FILE
heapmap --base 0xfffffffffffff000 -o OUT.svg FILE
heapmap --base 0x1000 --space 18446744073709551615 -o OUT.html FILE
calltree FILE
calltree --type count FILE
calltree --type topmost FILE
calltree -l --limit 0 FILE
graphs overview -o OUT FILE
graphs function -o OUT prog FILE
postproc FILE
postproc -l -c -s size FILE
postproc --legacy -l -c -s count FILE
postproc -f sprtrace -b 1 FILE
resolve FILE
resolve -f jsonl FILE
convert -f sprtrace FILE
convert -f sprtrace --rtrace-dialect document FILE
convert -f text FILE
convert -f jsonl FILE
convert -f mtrc FILE
convert -f mtrc --mtrc-legacy --mtrc-words 4 FILE
convert -f swap FILE
convert -f swap --swap-dialect kernel --swap-time formula FILE
convert -f nettrace FILE
convert -f nettrace --nettrace-version 6 --nettrace-view alloctick FILE
convert -f pprof FILE
convert -f folded FILE
convert -f speedscope FILE
convert -f jsonl --from 1s --to 10s FILE
stacks FILE
stacks --json FILE
dump FILE
dump --records FILE
pagemap -d FILE
pagemap -p -s -T 3 FILE
allocmap FILE
allocmap -p 1 FILE FILE
allocmap --legacy -b 0 FILE
allocmap -b 0 -t ffffffffffffffff -l 0 -h ffffffffffffffff -k 18446744073709551615 FILE
allocmap --animate FILE FILE
from-function prog FILE
alloc-sizes FILE
alloc-sizes FILE 18014398509481983
stats FILE FILE
sort FILE 5
mprof -v FILE
mprof --json FILE
mprof -g - -l FILE
mprof --bins 18446744073709551615 FILE
mptrace -v -s FILE
mptrace -H OUT FILE
mptrace -S OUT FILE
mptrace --legacy FILE
swap-heap FILE
swap-heap --every 1ms FILE
swap-heap --every 1 --tsv FILE
swap-libraries FILE
swap-persistent --stack --freed FILE
swap-maps FILE
swap-calls FILE
`

// TestExtremes runs each subcommand on small traces whose times, sizes, addresses and counts
// are at their limits, in each format. None may use much memory, print much, or crash.
func TestExtremes(t *testing.T) {
	if name := os.Getenv(extremesVariable); name != "" {
		extremesChild(t, name)
		return
	}
	traces := extremeTraces(t)
	for _, name := range slices.Sorted(maps.Keys(traces)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "trace.jsonl")
			const areas = "00001000-00002000 rw-p 00000000 00:00 0 [heap]\nfffffffff0000000-fffffffffffff000 rw-p 00000000 00:00 0 \n"
			self, err := os.Executable()
			if err := errors.Join(err, os.WriteFile(file, traces[name], 0o600), os.WriteFile(filepath.Join(dir, "maps"), []byte(areas), 0o600)); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, "-test.run=^TestExtremes$", "-test.count=1")
			cmd.Env = append(os.Environ(), extremesVariable+"="+file)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, lastLines(out, 40))
			}
			if t.Failed() {
				t.Logf("the trace:\n%s", traces[name])
			}
		})
	}
}

// lastLines returns the last command that began and the lines after it, cut to n lines.
func lastLines(out []byte, n int) string {
	if at := bytes.LastIndex(out, []byte("\nrtrace ")); at >= 0 {
		out = out[at:]
	}
	lines := strings.SplitN(string(out), "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

// extremesChild runs the commands on a trace and on its conversions to other formats.
func extremesChild(t *testing.T, file string) {
	limitMemory(t)
	dir := filepath.Dir(file)
	files := []string{file}
	for _, format := range []string{"sprtrace", "text", "mtrc", "swap", "nettrace"} {
		out := filepath.Join(dir, "trace."+format)
		if code := extreme(t, "convert", "-f", format, "-o", out, file); code == cli.OK || code == cli.Incomplete {
			files = append(files, out)
		}
	}
	extreme(t, "replay", "--runs", "1", "--malloc", "glibc", file)
	for _, file := range files {
		for line := range strings.Lines(strings.TrimSpace(extremeCommands)) {
			scratch, err := os.MkdirTemp(dir, "out")
			if err != nil {
				t.Fatal(err)
			}
			args := strings.Fields(line)
			for n, arg := range args {
				if arg == "FILE" {
					args[n] = file
				}
				args[n] = strings.Replace(args[n], "OUT", filepath.Join(scratch, "out"), 1)
				if arg == manyPoints && file != files[0] {
					args[n] = fewPoints
				}
			}
			extreme(t, args...)
			if err := os.RemoveAll(scratch); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// limitMemory makes the process fail when it maps more memory, or writes a longer file, than
// a subcommand may.
func limitMemory(t *testing.T) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	var data uint64
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "VmData: %d kB", &data); err == nil {
			break
		}
	}
	if data == 0 {
		t.Fatal("VmData is not known")
	}
	limit := data<<10 + extremesMemory
	debug.SetMemoryLimit(extremesMemory / 2)
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: extremesOutput, Max: extremesOutput}); err != nil {
		t.Fatal(err)
	}
}

// tooMuch counts the bytes that are written to it, and refuses more than a subcommand may
// write.
type tooMuch struct{ n int }

func (m *tooMuch) Write(b []byte) (int, error) {
	if m.n += len(b); m.n > extremesOutput {
		return 0, fmt.Errorf("more than %d bytes of output", extremesOutput)
	}
	return len(b), nil
}

// extreme runs a subcommand and checks that it ends properly.
func extreme(t *testing.T, args ...string) cli.ExitCode {
	t.Helper()
	fmt.Println("rtrace", strings.Join(args, " "))
	var out tooMuch
	var errOut bytes.Buffer
	s := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errOut}
	code := run(context.Background(), s, append([]string{"rtrace"}, args...))
	if code < cli.OK || code > cli.Incomplete || out.n > extremesOutput || errOut.Len() > 1<<16 {
		t.Errorf("%v: exit code %d, %d bytes of output, %.500q", args, code, out.n, errOut.String())
	}
	if text := errOut.String(); code == cli.Failed && !strings.HasPrefix(strings.TrimPrefix(text, "rtrace "), args[0]+": ") {
		t.Errorf("%v: exit code %d, %.500q", args, code, errOut.String())
	}
	return code
}
