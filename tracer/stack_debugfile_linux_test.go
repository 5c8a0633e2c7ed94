package tracer

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/plan"
)

// debugFrame has the compiler write tables for debuggers alone (.debug_frame), which are
// not loaded with the program.
var debugFrame = []string{"-g", testutil.OmitFramePointers, "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"}

// tool runs a program that makes a file.
func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// stripped makes dir/shadow from a program, without debugging information, and its debug
// file at debug, whose name the program contains.
func stripped(t *testing.T, program, dir, debug string) string {
	t.Helper()
	path := filepath.Join(dir, "shadow")
	if err := os.MkdirAll(filepath.Dir(debug), 0o755); err != nil {
		t.Fatal(err)
	}
	tool(t, "objcopy", "--only-keep-debug", program, debug)
	tool(t, "objcopy", "--strip-all", "--add-gnu-debuglink="+debug, program, path)
	return path
}

// Tables in .debug_frame, of the program or of its debug file, serve as well as
// .eh_frame.
func TestStacksFromDebugFrame(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "shadow", debugFrame...)
	t.Run("itself", func(t *testing.T) {
		tracedStacks(t, byTables(plan.UnwindEH, nil), program, "2000").allShadowed(false)
	})
	for _, folder := range []string{".", ".debug"} {
		t.Run("file-in-"+folder, func(t *testing.T) {
			dir := t.TempDir()
			path := stripped(t, program, dir, filepath.Join(dir, folder, "shadow.debug"))
			r := tracedStacks(t, byTables(plan.UnwindEH, nil), path, "2000")
			r.allShadowed(false)
		})
	}
}

// A debug file that belongs to another build is not used.
func TestStacksWithForeignDebugFile(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "shadow", debugFrame...)
	other := testutil.Build(t, "shadow", append(debugFrame, "-O1")...)
	dir := t.TempDir()
	debug := filepath.Join(dir, "shadow.debug")
	path := stripped(t, program, dir, debug)
	tool(t, "objcopy", "--only-keep-debug", other, debug)
	tracedStacks(t, byTables(plan.UnwindEH, nil), path, "2000").allFailed(onlyCaller)
}
