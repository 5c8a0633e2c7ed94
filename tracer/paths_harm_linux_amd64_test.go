package tracer

import (
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/plan"
)

// interruption is what a signal handler of the program interrupted does within calls, and whether
// it notices that they are traced.
type interruption struct {
	how       string
	functions []string
	noticed   bool
	killed    bool // by SIGILL, because the kernel has forgotten the call
}

var (
	inside  = []string{"malloc", "calloc", "free"}
	outside = []string{"realloc", "posix_memalign"}
)

// Signal handlers within calls that are recorded inside see the return address and the callers that
// they would see without the tracer, can leave the call by an exception, and can allocate on a stack
// above the thread's. The kernel maps no page of its own.
func TestPathsAreNotNoticed(t *testing.T) {
	interrupted(t, withPaths, []interruption{
		{how: "word", functions: inside},
		{how: "altstack", functions: inside[:2]},
		{how: "backtrace", functions: inside},
		{how: "unwind", functions: inside[:2]},
		{how: "page", functions: inside},
	})
}

// Return probes are noticed: those of malloc and calloc, and with paths those that remain. Here an
// exception that nothing catches is counted; a program that throws it ends.
func TestReturnProbesAreNoticed(t *testing.T) {
	all := func(functions []string) []interruption {
		return []interruption{
			{how: "altstack", functions: functions[:1], noticed: true, killed: true},
			{how: "word", functions: functions, noticed: true},
			{how: "backtrace", functions: functions, noticed: true},
			{how: "unwind", functions: functions, noticed: true},
			{how: "page", functions: functions, noticed: true},
		}
	}
	t.Run("returns", func(t *testing.T) { interrupted(t, withReturns, all(inside[:2])) })
	t.Run("paths", func(t *testing.T) { interrupted(t, withPaths, all(outside)) })
}

// interrupted runs the program for each interruption, or for the first one in a short test.
func interrupted(t *testing.T, set func(o *plan.Options), all []interruption) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "interrupted")
	if !testutil.Sweep(t) {
		all = all[:1]
	}
	for _, in := range all {
		t.Run(in.how+" "+strings.Join(in.functions, " "), func(t *testing.T) {
			t.Parallel() // the tests mostly wait
			const n = 10
			child := testutil.Spawn(t, program, append([]string{in.how, strconv.Itoa(n)}, in.functions...)...)
			child.Ready()
			r := attachTo(t, child.PID, set)
			child.Go()
			if in.killed {
				if code := child.Wait(); code != 128+int(syscall.SIGILL) {
					t.Errorf("exit code %d, want SIGILL's: %s", code, child.Stderr())
				}
				r.end()
				return
			}
			report := child.Report()
			records := r.end()
			want := uint64(0)
			if in.noticed {
				want = uint64(n * len(in.functions))
			} else {
				compare(t, records, report)
				r.whole()
			}
			if report.Noticed != want {
				t.Errorf("%d of %d calls noticed the tracer, want %d", report.Noticed, n*len(in.functions), want)
			}
		})
	}
}
