package tracer

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/plan"
)

// Some allocators also define the operators, most with the allocation itself in them.
// Each call counts once, under the name of the operator, or of the first of several
// operators with the same code.
func TestOperatorsOfAllocators(t *testing.T) {
	testutil.NeedBPF(t)
	program, all := testutil.Build(t, "operators"), ways(t)
	for _, path := range allocatorLibraries(t) {
		whose := "3"
		if strings.Contains(path, "mimalloc") {
			whose = "7" // it is written in C: its operators end the program
		}
		for _, way := range all {
			t.Run(filepath.Base(path)+"-"+way.name, func(t *testing.T) {
				operatorsOf(t, program, path, whose, way)
			})
		}
		all = all[len(all)-1:] // the mechanisms of the oldest kernels; one library suffices for the others
	}
}

// The same for an allocator of ours, at all widths: its operators jump to its malloc, and
// to code that they share with it.
func TestOperatorsThatJump(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		program, library := build(t, "operators"), build(t, "fastalloc", "-shared", "-fPIC")
		for _, way := range []way{{"best", func(*plan.Options) {}}, {"oldest", oldest}} {
			t.Run(way.name, func(t *testing.T) { operatorsOf(t, program, library, "1", way) })
		}
	})
}

// Operators of an allocator that is linked before libc's and calls libc's: each call
// counts once, even a delete, which continues after it was counted.
func TestOperatorsBeforeLibc(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		program, library := build(t, "operators"), build(t, "operators_wrap", "-shared", "-fPIC")
		for _, way := range []way{{"best", func(*plan.Options) {}}, {"oldest", oldest}} {
			t.Run(way.name, func(t *testing.T) { operatorsOf(t, program, library, "1", way) })
		}
	})
}

// operatorsOf compares the trace with the log of a program that uses the operators of a
// preloaded library.
func operatorsOf(t *testing.T, program, library, whose string, way way) {
	t.Helper()
	cmd := exec.Command(program, "5", whose)
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+library)
	child := testutil.Start(t, cmd)
	child.Ready()
	r := attachTo(t, child.PID, func(o *plan.Options) {
		way.set(o)
		o.Operators = plan.OperatorsAll
	})
	child.Go()
	report := child.Report()
	records := r.end()
	r.whole()
	canonicalIn(t, library, report)
	compare(t, withoutExceptions(t, records, report), report)
}

// allocatorLibraries returns the installed libraries of allocators.
func allocatorLibraries(t *testing.T) []string {
	t.Helper()
	testutil.Extra(t, "other allocators")
	var all []string
	for _, name := range []string{"libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"} {
		found, err := filepath.Glob("/usr/lib/*/" + name)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s is not installed (make test installs it)", name)
		}
		path, err := filepath.EvalSymlinks(found[0])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, path)
	}
	return all
}

// canonicalIn gives each call of a report the first of the names that have the same code
// in a library.
func canonicalIn(t *testing.T, path string, report *testutil.Report) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	addr := map[string]uint64{}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			addr[s.Name] = s.Value
		}
	}
	first := map[uint64]string{}
	names := map[string]string{}
	word := uint64(8)
	if f.Class == elf.ELFCLASS32 {
		word = 4
	}
	rows := slices.Concat(plan.MemoryModule, plan.OperatorModule(word))
	for i := range rows {
		name := strings.TrimSpace(rows[i].Name)
		if name == "" {
			name = rows[i].Symbol
		}
		at, ok := addr[rows[i].Symbol]
		if !ok {
			continue
		}
		if first[at] == "" {
			first[at] = name
		}
		names[name] = first[at]
	}
	for i := range report.Calls {
		if c := &report.Calls[i]; names[c.Function] != "" {
			c.Function = names[c.Function]
		}
	}
}
