package tracer

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
)

// chainScript allocates blocks of a unique size below a known chain of functions, which
// are interpreted at first and compiled later.
const chainScript = `const fs = require("fs");
function innermost(n) { return Buffer.allocUnsafeSlow(700000 + n).length; }
function between(n) { return innermost(n) + 1; }
function outermost(n) { return between(n) + 1; }
fs.writeSync(3, "ready\n"); fs.readSync(4, Buffer.alloc(1));
for (let i = 0; i < 2000; i++) outermost(i % 100);
`

// perfEntry is an entry of a perf map.
type perfEntry struct {
	start, size uint64
	name        string
}

// perfMap reads the perf map of a virtual machine: lines of start, size and name.
func perfMap(t *testing.T, path string) []perfEntry {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []perfEntry
	for line := range bytes.Lines(text) {
		var c perfEntry
		rest := strings.SplitN(strings.TrimSuffix(string(line), "\n"), " ", 3)
		if len(rest) != 3 {
			t.Fatalf("%s: line %q", path, line)
		}
		if _, err := fmt.Sscanf(rest[0]+" "+rest[1], "%x %x", &c.start, &c.size); err != nil {
			t.Fatalf("%s: line %q: %v", path, line, err)
		}
		c.name = rest[2]
		all = append(all, c)
	}
	return all
}

// The frames of compiled JavaScript are those of the program's chain of calls, by the
// names in node's own perf map.
func TestStacksOfNodeAgainstPerfMap(t *testing.T) {
	testutil.NeedBPF(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "chain.js")
	if err := os.WriteFile(script, []byte(chainScript), 0o600); err != nil {
		t.Fatal(err)
	}
	// Without the optimizer no function is inlined into another one. The map does not
	// contain where the garbage collector moves code to.
	cmd := exec.Command(installed(t, "node"), "--perf-basic-prof", "--interpreted-frames-native-stack", "--no-opt", "--no-compact-code-space", script)
	cmd.Dir = dir // node writes a log there
	child := testutil.Start(t, cmd)
	// The path that node and perf use.
	path := fmt.Sprintf("/tmp/perf-%d.map", child.PID)
	t.Cleanup(func() { os.Remove(path) })
	child.Ready()
	r := attachTo(t, child.PID, byTables(plan.UnwindAuto, nil))
	child.Go()
	child.Succeed()
	records := r.end()
	r.whole()
	machine, name := perfMap(t, path), resolved(records)
	seen := 0
	for _, rec := range ofKind(records, trace.KindCall) {
		if rec.Call.Op != trace.OpAlloc || rec.Call.Size < 700000 || rec.Call.Size >= 700100 {
			continue
		}
		seen++
		s := &rec.Call.Stack
		if s.End != trace.StackComplete || !s.FramePointer {
			t.Errorf("call %d: stack is %s %s, frame pointer used: %v", rec.Call.Seq, s.End, s.Reason, s.FramePointer)
		}
		if fault := chainFault(s.Frames, machine, name); fault != "" {
			t.Fatalf("call %d: %s", rec.Call.Seq, fault)
		}
	}
	if seen != 2000 {
		t.Errorf("%d blocks, want 2000", seen)
	}
}

// chainFault returns what is wrong with a stack of chainScript.
func chainFault(frames []uint64, machine []perfEntry, name func(uint64) string) string {
	var chain []string
	text := ""
	for _, addr := range frames {
		in := ""
		for _, c := range machine {
			// A return address may be the end of its function.
			if addr > c.start && addr <= c.start+c.size {
				in = c.name // the last entry counts
			}
		}
		file := name(addr)
		text += fmt.Sprintf("%#x %s %s\n", addr, file, in)
		if in == "" && strings.Contains(file, "??") {
			return fmt.Sprintf("%#x is neither code of a file nor of the map:\n%s", addr, text)
		}
		if function, place, ok := strings.Cut(in, " "); ok && strings.Contains(place, "chain.js:") {
			// node 20 writes "JS:~name", node 18 "LazyCompile:~name".
			chain = append(chain, strings.TrimLeft(function[strings.IndexByte(function, ':')+1:], "~^*"))
		}
	}
	// The last frame is the script itself, which has no name.
	if len(chain) != 4 || chain[0] != "innermost" || chain[1] != "between" || chain[2] != "outermost" {
		return fmt.Sprintf("the chain of calls is %q\n%s", chain, text)
	}
	return ""
}
