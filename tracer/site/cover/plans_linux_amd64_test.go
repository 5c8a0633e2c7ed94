package cover

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/site"
)

// planned is a function with a plan.
type planned struct {
	Function
	plan *Plan
}

// report is what a site knows about a call.
type report struct {
	site  *Site
	args  []uint64
	block uint64
}

// openCall is a call that has begun.
type openCall struct {
	entry   uint64 // in the file
	args    [2]uint64
	frame   uint64 // the caller's frame pointer
	noted   []uint64
	armed   *report // a return site was hit
	reports []report
	hits    int
}

// watcher compares the reports of sites with the calls.
type watcher struct {
	*process
	t         *testing.T
	functions map[uint64]*planned // by the address of their entry in the file
	sites     map[uint64][]*siteOf
	code      map[uint64][]byte // what breakpoints replaced
	calls     map[int]*openCall // by thread
	checked   map[string]*count
	threads   int
}

type siteOf struct {
	*Site
	of *planned
}

// count counts the calls of a function.
type count struct{ blocks, failures, hits int }

// watch runs the program and checks that each call that returns a block is reported once and
// rightly, and no other.
func watch(t *testing.T, c command, plans []*planned, args ...string) map[string]*count {
	t.Helper()
	w := &watcher{
		process: start(t, c, args...), t: t, functions: map[uint64]*planned{}, sites: map[uint64][]*siteOf{},
		code: map[uint64][]byte{}, calls: map[int]*openCall{}, checked: map[string]*count{}, threads: 1,
	}
	for _, f := range plans {
		w.functions[f.Entry] = f
		for i := range f.plan.Sites {
			s := &f.plan.Sites[i]
			addr := w.base + s.Addr
			if w.code[addr] == nil {
				code, err := w.breakpoint(addr)
				if err != nil {
					t.Fatal(err)
				}
				w.code[addr] = code
			}
			w.sites[addr] = append(w.sites[addr], &siteOf{s, f})
		}
	}
	if err := unix.PtraceCont(w.pid, 0); err != nil {
		t.Fatal(err)
	}
	for w.threads > 0 && !t.Failed() {
		if err := w.stop(); err != nil {
			t.Fatal(err)
		}
	}
	return w.checked
}

// stop handles a stop of a thread.
func (w *watcher) stop() error {
	tid, status, err := w.wait()
	if err != nil {
		return err
	}
	switch {
	case status.Exited() || status.Signaled():
		w.threads--
		if tid == w.pid && (status.Signaled() || status.ExitStatus() != 0) {
			return fmt.Errorf("the program ended with %#x", uint32(status))
		}
		return nil
	case status.StopSignal() == unix.SIGSTOP: // a new thread
		return unix.PtraceCont(tid, 0)
	case status.StopSignal() != unix.SIGTRAP:
		var r unix.PtraceRegs
		if err := unix.PtraceGetRegs(tid, &r); err != nil {
			return err
		}
		return fmt.Errorf("%v at %#x, which is %#x in the library", status.StopSignal(), r.Rip, r.Rip-w.base)
	case status.TrapCause() == unix.PTRACE_EVENT_CLONE:
		w.threads++
		return unix.PtraceCont(tid, 0)
	}
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &r); err != nil {
		return err
	}
	if err := w.trap(tid, &r); err != nil {
		return err
	}
	return unix.PtraceCont(tid, 0)
}

// trap handles a breakpoint.
func (w *watcher) trap(tid int, r *unix.PtraceRegs) error {
	switch r.Rip {
	case w.symbols["call_begin"]:
		w.calls[tid] = &openCall{entry: r.R11 - w.base, args: [2]uint64{r.Rdi, r.Rsi}, frame: r.Rbp}
		return nil
	case w.symbols["call_end"]:
		w.end(w.calls[tid], r.Rax)
		delete(w.calls, tid)
		return nil
	}
	r.Rip--
	code := w.code[r.Rip]
	if code == nil {
		return fmt.Errorf("a breakpoint at %#x", r.Rip)
	}
	if call := w.calls[tid]; call != nil {
		for _, s := range w.sites[r.Rip] {
			if s.of.Entry == call.entry {
				if err := w.hit(call, s, r); err != nil {
					return err
				}
			}
		}
	}
	if err := w.emulate(r, code); err != nil {
		return err
	}
	return unix.PtraceSetRegs(tid, r)
}

// hit handles a hit of a site by a call of its function.
func (w *watcher) hit(call *openCall, s *siteOf, r *unix.PtraceRegs) error {
	call.hits++
	if !s.When.Holds(false, r.Eflags, func(n uint8) uint64 { return *registerX86Of(r, n) }) {
		return nil
	}
	x := report{site: s.Site}
	for _, p := range s.Args {
		v, err := w.value(r, p)
		if err != nil {
			return err
		}
		x.args = append(x.args, v)
	}
	if err := w.checkFrame(call, s, r); err != nil {
		return err
	}
	var err error
	switch s.Role {
	case Note:
		call.noted = x.args
		return nil
	case Return:
		if call.armed != nil {
			w.t.Errorf("%s: %#x and %#x both have a return probe", s.of.Name, call.armed.site.Addr, s.Addr)
		}
		call.armed = &x
		return nil
	case Finish:
		x.args = call.noted
	}
	if x.block, err = w.value(r, s.Block); err == nil && x.block != 0 {
		call.reports = append(call.reports, x)
	}
	return err
}

// checkFrame compares the caller's frame pointer, where the plan finds it, with what it was.
func (w *watcher) checkFrame(call *openCall, s *siteOf, r *unix.PtraceRegs) error {
	if !s.Frame.Stack && s.Frame.Reg == site.NoReg {
		return nil
	}
	fp, err := w.value(r, s.Frame)
	if err == nil && fp != call.frame {
		w.t.Errorf("%s: at %#x the frame pointer is %#x, and was %#x", s.of.Name, s.Addr, fp, call.frame)
	}
	return err
}

// end compares the reports of a call with what it returned.
func (w *watcher) end(call *openCall, block uint64) {
	f := w.functions[call.entry]
	if f == nil {
		return
	}
	if call.armed != nil && block != 0 {
		call.armed.block = block
		call.reports = append(call.reports, *call.armed)
	}
	n := w.checked[f.Name]
	if n == nil {
		n = &count{}
		w.checked[f.Name] = n
	}
	n.hits += call.hits
	if block == 0 {
		n.failures++
		if len(call.reports) != 0 {
			w.t.Errorf("%s(%#x) failed and was reported: %+v", f.Name, call.args, call.reports)
		}
		return
	}
	n.blocks++
	if len(call.reports) != 1 {
		w.t.Errorf("%s(%#x) = %#x was reported %d times", f.Name, call.args, block, len(call.reports))
		return
	}
	if err := f.agrees(&call.reports[0], call.args[:], block); err != nil {
		w.t.Errorf("%s(%#x) = %#x: at %#x %q: %v", f.Name, call.args, block, call.reports[0].site.Addr, call.reports[0].site.Insn, err)
	}
}

// agrees compares a report with a call.
func (f *planned) agrees(x *report, args []uint64, block uint64) error {
	if x.block != block {
		return fmt.Errorf("block %#x", x.block)
	}
	if len(x.args) != len(f.Args) {
		return fmt.Errorf("%d arguments", len(x.args))
	}
	places := x.site.Args
	if x.site.Role == Finish {
		for i := range f.plan.Sites {
			if f.plan.Sites[i].Role == Note {
				places = f.plan.Sites[i].Args
			}
		}
	}
	for i, arg := range f.Args {
		want := args[arg]
		if places[i].Product {
			want = args[f.Factors[0]] * args[f.Factors[1]]
		}
		if x.args[i] != want {
			return fmt.Errorf("argument %d is %#x", arg, x.args[i])
		}
	}
	return nil
}

// planAll returns the plans of all functions of a library that have one.
func planAll(t *testing.T, l *library) []*planned {
	t.Helper()
	var all []*planned
	seen := map[uint64]bool{}
	for _, f := range functions {
		entry, ok := l.exports[f.Name]
		if !ok || seen[entry] {
			continue
		}
		seen[entry] = true
		f.Entry = entry
		p, err := Find(&l.Image, f, UsualCosts)
		if err != nil {
			t.Logf("%v", err)
			continue
		}
		all = append(all, &planned{f, p})
	}
	return all
}

// TestPlans runs the allocators of this machine.
func TestPlans(t *testing.T) {
	program, err := compileCalls()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range here[:4] {
		t.Run(filepath.Base(path), func(t *testing.T) {
			l := installed(t, path)
			c := command{program: program, library: path}
			if path != here[0] {
				c.env = []string{"LD_PRELOAD=" + path}
			}
			runPlans(t, c, l)
		})
	}
}

// runPlans checks plans with one thread, with several, and with little memory.
func runPlans(t *testing.T, c command, l *library) {
	plans := planAll(t, l)
	mask := 0 // the order is that of the program's table
	for i, f := range functions {
		if _, ok := l.exports[f.Name]; ok {
			mask |= 1 << i
		}
	}
	for _, v := range []struct {
		name                   string
		calls, threads, memory int
	}{
		{"one thread", 20_000, 1, 0},
		{"four threads", 5000, 4, 0},
		{"little memory", 5000, 1, 16 << 20},
		{"little memory, four threads", 2000, 4, 48 << 20},
	} {
		t.Run(v.name, func(t *testing.T) {
			for name, n := range watch(t, c, plans, "1", strconv.Itoa(v.calls), strconv.Itoa(v.threads), strconv.Itoa(v.memory), strconv.Itoa(mask)) {
				t.Logf("%-24s %5d blocks, %4d failures, %.2f traps each", name, n.blocks, n.failures,
					float64(n.hits)/float64(n.blocks+n.failures))
			}
		})
	}
}
