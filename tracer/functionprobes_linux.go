package tracer

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/keeper"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
)

// lookWait is the shortest time between two looks at a process's files.
const lookWait = 20 * time.Millisecond

// functionProbes holds what a tracer has in the kernel for traced functions. It has its
// own keepers, one for the functions found at the start and one for each look that found
// more: a keeper cannot receive files later.
type functionProbes struct {
	plan      *plan.Plan
	functions *functions.Functions
	watch     func(fd int) error // makes the recording end when a keeper ends
	late      atomic.Uint64      // number of functions in files that were mapped before their probes were attached

	mu     sync.Mutex
	kept   []keptProbes
	task   int // thread that the perf events are attached to
	closed bool

	changes  chan struct{}
	stopping chan struct{}
	stopped  sync.Once
	running  sync.WaitGroup
}

// keptProbes holds the probes of one keeper.
type keptProbes struct {
	keeper *keeper.Keeper
	groups []probeGroup
}

// openFunctions loads the programs for traced functions and opens their rings, if the
// plan traces functions.
func (k *kernel) openFunctions(p *plan.Plan, cpus []int, size int) error {
	if !p.Options.Calls() {
		return nil
	}
	t := functions.Target{PID: uint32(p.Target.PID), Narrow: p.Target.Narrow()}
	if ns := p.Namespace; ns != nil {
		t.NamespaceDev, t.NamespaceInode = ns.Dev, ns.Inode
	}
	mode := functions.Mode{
		Multi: p.Mechanisms.Attach == host.MechanismMulti, Cookies: p.Mechanisms.Sites == plan.SitesCookie,
		Measures: slices.ContainsFunc(p.Functions.Modules, func(f functions.Function) bool { return f.Measures() }),
	}
	f, err := functions.Load(t, p.Options.Functions, mode, cpus[len(cpus)-1], size, p.Options.Testing.VerifierLog)
	if err != nil {
		return err
	}
	if len(p.Options.Modules) > 0 {
		if err := f.Stackers(k.objects.CallStack, k.objects.ReturnedStack); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	k.functions = &functionProbes{plan: p, functions: f, changes: make(chan struct{}, 1), stopping: make(chan struct{})}
	sources, err := order.OpenRings(f.Rings(), cpus, size)
	if err != nil {
		return err
	}
	for _, s := range sources {
		s.(*order.RingSource).Functions = f
	}
	k.sources = append(k.sources, sources...)
	return nil
}

// attach attaches probes, those at returns first: a return without an entry is ignored,
// but an entry without a return would count as lost.
func (n *functionProbes) attach(probes []plan.FunctionProbe, task int) (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.task = task
	if len(probes) == 0 || n.closed {
		return nil
	}
	b := functionBatch{Owner: n, numbers: map[string]int{}, returns: map[fileOffset]*functionReturn{}}
	defer func() {
		for _, f := range b.files {
			err = errors.Join(err, f.Close())
		}
	}()
	if err := b.gather(probes); err != nil {
		return err
	}
	kept := keptProbes{groups: b.groups}
	if kept.keeper, err = keeper.Start(); err != nil {
		return err
	}
	n.kept = append(n.kept, kept)
	if err := kept.keeper.Give(b.programs, b.files); err != nil {
		return err
	}
	return explainFunction(&kept, kept.keeper.Attach(n.addressed(&kept)))
}

// addressed returns the groups of a keeper, with the thread or process that they attach
// to now.
func (n *functionProbes) addressed(kept *keptProbes) []keeper.Group {
	var all []keeper.Group
	for i := range kept.groups {
		g := kept.groups[i].Group
		g.PID = n.task
		if g.Multi {
			g.PID = n.plan.Target.PID
		}
		all = append(all, g)
	}
	return all
}

// explainFunction adds the probe to an error of the keeper.
func explainFunction(kept *keptProbes, err error) error {
	var failed *keeper.Error
	if !errors.As(err, &failed) {
		return err
	}
	g := &kept.groups[failed.Group]
	probe := &g.probes[min(failed.Site, len(g.probes)-1)]
	if g.Multi && len(g.probes) > 1 {
		return fmt.Errorf("attach probes to %s and others of %s: %w", probe.Function, probe.Path, err)
	}
	return fmt.Errorf("attach probe to %s in %s: %w", probe.Function, probe.Path, host.PerfRefused(err))
}

// groups returns the groups of all keepers.
func (n *functionProbes) groups() (all []probeGroup) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.kept {
		all = append(all, n.kept[i].groups...)
	}
	return all
}

// replace attaches perf events to another thread, after theirs has ended.
func (n *functionProbes) replace(task int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.task = task
	for i := range n.kept {
		if err := explainFunction(&n.kept[i], n.kept[i].keeper.Replace(n.addressed(&n.kept[i]))); err != nil {
			return err
		}
	}
	return nil
}

// hold holds the probes of traced functions; see kernel.hold.
func (n *functionProbes) hold(tid int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.kept {
		if err := n.kept[i].keeper.Hold(heldGroups(n.kept[i].groups, tid)); err != nil {
			return fmt.Errorf("hold the probes: %w", host.PerfRefused(err))
		}
	}
	return nil
}

// follow looks for more functions whenever the mappings change. It calls watch for each
// keeper.
func (n *functionProbes) follow(watch func(fd int) error) error {
	n.watch = watch
	for i := range n.kept {
		if err := watch(n.kept[i].keeper.FD()); err != nil {
			return err
		}
	}
	n.running.Go(func() {
		pause := time.NewTimer(lookWait)
		defer pause.Stop()
		for {
			select {
			case <-n.stopping:
				return
			case <-n.changes:
			}
			// After an error the functions are not traced, and a warning reports it.
			if err := n.look(); err != nil && !errors.Is(err, host.ErrNoProcess) {
				n.plan.Options.Warnf("probe functions of new files: %v", err)
			}
			pause.Reset(lookWait) // limits the looks at a process that maps files all the time
			select {
			case <-n.stopping:
				return
			case <-pause.C:
			}
		}
	})
	return nil
}

// changed requests a look; it never waits.
func (n *functionProbes) changed() {
	select {
	case n.changes <- struct{}{}:
	default:
	}
}

// look finds and attaches functions in newly mapped files.
func (n *functionProbes) look() error {
	s := plan.NewFunctionSearch(n.plan)
	if err := s.Look(); err != nil {
		return err
	}
	for _, err := range s.Errs {
		n.plan.Options.Warnf("%v", err)
	}
	if len(s.Probes) == 0 {
		return nil
	}
	n.mu.Lock()
	task, before := n.task, len(n.kept)
	n.mu.Unlock()
	if err := n.attach(s.Probes, task); err != nil {
		return err
	}
	for i := range s.Probes {
		n.late.Add(1)
		report := n.plan.Options.Warnf
		if s.Probes[i].Module() {
			report = n.plan.Options.Logf // modules have many functions
		}
		report("%s: %s was mapped while recording: calls before now are missing", s.Probes[i].Place(), s.Probes[i].Entry.Path)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.kept) > before {
		return n.watch(n.kept[before].keeper.FD())
	}
	return nil
}

// losses returns the losses since the last call, and the number of functions whose files
// were mapped before their probes were attached.
func (n *functionProbes) losses() (lost functions.Losses, late uint64, err error) {
	lost, err = n.functions.Grown()
	return lost, n.late.Swap(0), err
}

// stop stops following; it may be called more than once.
func (n *functionProbes) stop() {
	n.stopped.Do(func() { close(n.stopping) })
	n.running.Wait()
}

// Close removes the probes and frees everything.
func (n *functionProbes) Close() error {
	n.stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	var all []error
	for i := range n.kept {
		all = append(all, n.kept[i].keeper.Close())
	}
	n.kept = nil
	return errors.Join(append(all, n.functions.Close())...)
}

// fileOffset is a place in a file of a functionBatch.
type fileOffset struct {
	file   int
	offset uint64
}

// functionReturn is a return instruction of one or more functions.
type functionReturn struct {
	probe   plan.Probe
	leaving functions.Leaving
}

// functionBatch collects what a new keeper receives.
type functionBatch struct {
	Owner    *functionProbes
	numbers  map[string]int // numbers of the files, by path
	files    []*os.File
	programs []*ebpf.Program
	groups   []probeGroup
	returns  map[fileOffset]*functionReturn
}

// gather makes the groups for probes.
func (b *functionBatch) gather(probes []plan.FunctionProbe) error {
	f := b.Owner.functions
	var order []fileOffset
	for i := range probes {
		p := &probes[i]
		file, err := b.file(&p.Entry)
		if err != nil {
			return err
		}
		for _, r := range p.Returns {
			at := fileOffset{file, r.Offset}
			if b.returns[at] == nil {
				b.returns[at] = &functionReturn{probe: r}
				order = append(order, at)
			}
			b.returns[at].leaving.Add(p.Function)
		}
		if p.Ways.Stub {
			leaving := functions.Leaving{Stub: true}
			leaving.Add(p.Function)
			made, err := f.Return(leaving)
			if err != nil {
				return err
			}
			b.add(made, file, &p.Entry, true)
		}
	}
	for _, at := range order {
		made, err := f.Return(b.returns[at].leaving)
		if err != nil {
			return err
		}
		b.add(made, at.file, &b.returns[at].probe, false)
	}
	for i := range probes {
		p := &probes[i]
		var made functions.Probe
		var err error
		if p.Value != nil {
			made, err = f.Look(p.Value)
		} else {
			made, err = f.Entry(p.Function, p.Back, p.Ways)
		}
		if err != nil {
			return err
		}
		b.add(made, b.numbers[p.Entry.File], &p.Entry, false)
	}
	return nil
}

// file opens the file of a probe, unless it is open, and returns its number.
func (b *functionBatch) file(p *plan.Probe) (int, error) {
	if number, ok := b.numbers[p.File]; ok {
		return number, nil
	}
	f, err := os.OpenFile(p.File, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, err // the error contains the path
	}
	b.numbers[p.File] = len(b.files)
	b.files = append(b.files, f)
	return len(b.files) - 1, nil
}

// add puts a probe into the group with the same program, file and kind. Groups are
// attached in their order.
func (b *functionBatch) add(made functions.Probe, file int, p *plan.Probe, ret bool) {
	program := slices.Index(b.programs, made.Program)
	if program < 0 {
		program = len(b.programs)
		b.programs = append(b.programs, made.Program)
	}
	at := slices.IndexFunc(b.groups, func(g probeGroup) bool {
		return g.Program == program && g.File == file && g.Return == ret
	})
	if at < 0 {
		at = len(b.groups)
		b.groups = append(b.groups, probeGroup{Group: keeper.Group{
			Program: program, File: file, Return: ret,
			Multi: b.Owner.plan.Mechanisms.Attach == host.MechanismMulti, Cookies: b.Owner.plan.Mechanisms.Sites == plan.SitesCookie,
		}})
	}
	g := &b.groups[at]
	site := keeper.Site{Offset: p.Offset}
	if g.Cookies {
		site.Cookie = made.Cookie
	}
	g.Sites, g.probes = append(g.Sites, site), append(g.probes, *p)
	g.originals = append(g.originals, readInstruction(b.files[file], p.Offset))
}
