package activity

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Target is the traced process.
type Target struct {
	PID uint32 // in the tracer's PID namespace
	// NamespaceDev and NamespaceInode identify the tracer's PID namespace; they are 0 in the
	// initial one.
	NamespaceDev, NamespaceInode uint64
}

// Activity holds the programs for a process. It does nothing before Attach.
type Activity struct {
	options Options
	objects activityObjects
	calls   callTable
	files   *fileWatch // nil: files are not watched
	links   []link.Link
	events  []int // file descriptors of the perf events
	before  Losses
	perCPU  []uint64
}

// Losses counts missing events.
type Losses struct {
	Full    uint64 // events that found no room in a ring
	Skipped uint64 // program runs that the kernel skipped
}

// Load loads the programs, for CPUs with numbers up to last and rings of ringBytes bytes. log
// selects what the verifier logs (for tests).
func Load(t Target, o Options, last, ringBytes int, log ebpf.LogLevel) (*Activity, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	spec, err := loadActivity()
	if err != nil {
		return nil, fmt.Errorf("read BPF object: %w", err)
	}
	if err := t.set(spec); err != nil {
		return nil, err
	}
	if err := spec.Variables[activityVarCfgStateFirst].Set(o.Switches && stateFirst()); err != nil {
		return nil, fmt.Errorf("set %s: %w", activityVarCfgStateFirst, err)
	}
	spec.Maps[activityMapRings].MaxEntries = uint32(last + 1)
	spec.Maps[activityMapRings].InnerMap.MaxEntries = uint32(ringBytes)
	if t.NamespaceInode == 0 {
		spec.Maps[activityMapThreads].MaxEntries = 1
	}
	a := &Activity{options: o}
	loading := ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogLevel: log}}
	if err := spec.LoadAndAssign(&a.objects, &loading); err != nil {
		return nil, fmt.Errorf("load BPF programs: %w", err)
	}
	if o.Calls != 0 {
		a.calls = newCallTable(o.Calls, kernelSymbols())
		put := func(index uint32, rule *activityCallRule) error { return a.objects.Calls.Put(index, rule) }
		if err := a.calls.rules(put); err != nil {
			return nil, errors.Join(fmt.Errorf("set the recorded system calls: %w", err), a.Close())
		}
	}
	if o.Files {
		if a.files, err = openFiles(t, &a.objects, log); err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	return a, nil
}

// set sets the process in the programs' configuration.
func (t *Target) set(spec *ebpf.CollectionSpec) error {
	for name, value := range map[string]any{
		activityVarCfgPid:          t.PID,
		activityVarCfgPidNamespace: t.NamespaceInode != 0,
		activityVarCfgPidnsDev:     t.NamespaceDev,
		activityVarCfgPidnsIno:     t.NamespaceInode,
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

// stateFirst reports whether sched_switch passes the task's state before the tasks, as Linux 5.18
// does. If the kernel does not provide the types, the result is false.
func stateFirst() bool {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return false
	}
	var def *btf.Typedef
	if err := kernel.TypeByName("btf_trace_sched_switch", &def); err != nil {
		return false
	}
	pointer, ok := def.Type.(*btf.Pointer)
	if !ok {
		return false
	}
	// After the context and whether the switch is a preemption.
	proto, ok := pointer.Target.(*btf.FuncProto)
	if !ok || len(proto.Params) < 5 {
		return false
	}
	_, task := btf.UnderlyingType(proto.Params[2].Type).(*btf.Pointer)
	return !task
}

// Rings returns the map with the ring buffer of each CPU.
func (a *Activity) Rings() *ebpf.Map { return a.objects.Rings }

// Options returns what is recorded.
func (a *Activity) Options() *Options { return &a.options }

// Calls calls yield for the system calls that are recorded.
func (a *Activity) Calls(yield func(*Call)) {
	for _, list := range a.calls {
		for _, call := range list {
			if call != nil {
				yield(call)
			}
		}
	}
}

// Attach starts recording, on these CPUs. The rings must be in place.
func (a *Activity) Attach(cpus []int) error {
	o := &a.options
	if o.Switches {
		if err := a.tracepoint("sched_switch", a.objects.Switched); err != nil {
			return fmt.Errorf("watch context switches: %w", err)
		}
	}
	if o.Calls != 0 {
		err := a.tracepoint("sys_enter", a.objects.CallBegins)
		if err == nil {
			err = a.tracepoint("sys_exit", a.objects.CallEnds)
		}
		if err != nil {
			return fmt.Errorf("watch system calls: %w", err)
		}
	}
	if a.files != nil {
		if err := a.watchFiles(); err != nil {
			return fmt.Errorf("watch files: %w", err)
		}
	}
	if o.Sample != 0 {
		for _, cpu := range cpus {
			if err := a.sample(cpu); err != nil {
				return fmt.Errorf("sample CPU %d: %w", cpu, err)
			}
		}
	}
	if err := a.objects.Enabled.Set(uint32(1)); err != nil {
		return fmt.Errorf("switch the programs on: %w", err)
	}
	return nil
}

func (a *Activity) watchFiles() error {
	err := a.tracepoint("sys_enter", a.files.objects.UseBegins)
	if err == nil {
		err = a.tracepoint("sys_exit", a.files.objects.UseEnds)
	}
	if err == nil {
		err = a.files.objects.Enabled.Set(uint32(1))
	}
	if err != nil {
		return err
	}
	return a.files.seed()
}

func (a *Activity) tracepoint(name string, program *ebpf.Program) error {
	l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: name, Program: program})
	if err != nil {
		return err
	}
	a.links = append(a.links, l)
	return nil
}

// sample runs the program at the ticks of a clock that a CPU has while it is busy.
func (a *Activity) sample(cpu int) error {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample: uint64(a.options.Sample),
		Bits:   unix.PerfBitDisabled | unix.PerfBitExcludeIdle,
	}
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("open perf event: %w", err)
	}
	a.events = append(a.events, fd)
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, a.objects.Sampled.FD()); err != nil {
		return fmt.Errorf("attach program: %w", err)
	}
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		return fmt.Errorf("enable perf event: %w", err)
	}
	return nil
}

// Disable makes the programs return at once, for good. Any goroutine may call it.
func (a *Activity) Disable() error {
	if err := a.objects.Enabled.Set(uint32(0)); err != nil {
		return fmt.Errorf("switch the programs off: %w", err)
	}
	if a.files != nil {
		if err := a.files.objects.Enabled.Set(uint32(0)); err != nil {
			return fmt.Errorf("switch the programs for files off: %w", err)
		}
	}
	return nil
}

// Grown returns the losses since the last call.
func (a *Activity) Grown() (Losses, error) {
	var now Losses
	if err := a.objects.Losses.Lookup(uint32(activityActivityLossACTIVITY_RING_FULL), &a.perCPU); err != nil {
		return now, fmt.Errorf("read loss counters: %w", err)
	}
	for _, n := range a.perCPU {
		now.Full += n
	}
	programs := []*ebpf.Program{a.objects.Sampled, a.objects.Switched, a.objects.CallBegins, a.objects.CallEnds}
	if a.files != nil {
		programs = append(programs, a.files.programs()...)
	}
	for _, p := range programs {
		stats, err := p.Stats()
		if err != nil {
			return now, fmt.Errorf("read program statistics: %w", err)
		}
		now.Skipped += stats.RecursionMisses
	}
	grown := Losses{now.Full - a.before.Full, now.Skipped - a.before.Skipped}
	a.before = now
	return grown, nil
}

// Close ends the recording and frees everything.
func (a *Activity) Close() error {
	var all []error
	for _, l := range a.links {
		all = append(all, l.Close())
	}
	for _, fd := range a.events {
		all = append(all, unix.Close(fd))
	}
	a.links, a.events = nil, nil
	if a.files != nil {
		all = append(all, a.files.objects.Close())
	}
	return errors.Join(append(all, a.objects.Close())...)
}
