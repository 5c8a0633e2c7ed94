package tracer

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
)

// inFile returns the mappings of a trace with the file at to in the place of path. It has
// the same content, and still exists to take names from.
func inFile(records []*trace.Record, path, to string) []*trace.Record {
	var out []*trace.Record
	for _, rec := range ofKind(records, trace.KindMapping) {
		moved := rec.Clone()
		if strings.HasPrefix(moved.Mapping.Path, path) { // or "path (deleted)"
			moved.Mapping.Path = to
		}
		out = append(out, moved)
	}
	return out
}

// fates are changes to a file while it is mapped.
var fates = map[string]func(t *testing.T, path, other string){
	"deleted": func(t *testing.T, path, _ string) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	},
	"replaced": func(t *testing.T, path, other string) { testutil.ReplaceFile(t, path, other) },
}

// The tables are those of the mapped file, whatever file has its path.
func TestStacksOfReplacedProgram(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "stacks", testutil.OmitFramePointers)
	other := testutil.Build(t, "stacks", testutil.OmitFramePointers, "-O1")
	for name, befall := range fates {
		t.Run(name, func(t *testing.T) {
			log := testutil.StackLogPath(t)
			mine := filepath.Join(t.TempDir(), "stacks")
			testutil.CopyFile(t, program, mine)
			child := testutil.Spawn(t, mine, log, "20", "2")
			child.Ready()
			befall(t, mine, other)
			r := attachTo(t, child.PID, byTables(plan.UnwindEH, nil))
			child.Go()
			run := ended(t, child, r, log)
			run.name = resolved(inFile(run.records, mine, program))
			run.exact(allCalls)
		})
	}
}

// The same holds for a library whose file was removed or replaced before the trace
// begins.
func TestStacksOfReplacedLibrary(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "stacks_late", testutil.OmitFramePointers)
	small, large := testutil.Plugs(t, testutil.Build)
	for name, befall := range fates {
		t.Run(name, func(t *testing.T) {
			log := testutil.StackLogPath(t)
			mine := filepath.Join(t.TempDir(), "plugs.so")
			testutil.CopyFile(t, small, mine)
			cmd := exec.Command(program, log, "0", mine)
			cmd.Env = append(os.Environ(), "LD_PRELOAD="+mine) // so that it is mapped at the gate
			child := testutil.Start(t, cmd)
			child.Ready()
			befall(t, mine, large)
			late(t, plan.UnwindEH, child, log).settled(allCalls)
		})
	}
}

// For a process that sees other files under the same paths, its own files are read.
func TestStacksInOtherMountNamespace(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "stacks", testutil.OmitFramePointers)
	other := testutil.Build(t, "stacks", testutil.OmitFramePointers, "-O1")
	dir, hidden := t.TempDir(), t.TempDir()
	mine := filepath.Join(dir, "stacks")
	testutil.CopyFile(t, other, mine) // the file that the test sees at the path
	testutil.CopyFile(t, program, filepath.Join(hidden, "stacks"))
	log := testutil.StackLogPath(t)
	const script = `mount -t tmpfs none "$1" && cp "$2/stacks" "$1" && exec "$1/stacks" "$3" 20 2`
	child := testutil.Start(t, exec.Command("unshare", "--mount", "sh", "-c", script, "sh", dir, hidden, log))
	child.Ready()
	r := attachTo(t, child.PID, byTables(plan.UnwindEH, nil))
	child.Go()
	run := ended(t, child, r, log)
	run.name = resolved(inFile(run.records, mine, program))
	run.exact(allCalls)
}
