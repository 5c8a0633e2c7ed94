package probe

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"

	"rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
)

// lookWait is the shortest time between two looks at a process's files.
const lookWait = 20 * time.Millisecond

// Functions holds what a tracer has in the kernel for traced functions. It has its
// own keepers, one for the functions found at the start and one for each look that found
// more: a keeper cannot receive files later.
type Functions struct {
	plan      *plan.Plan
	functions *functions.Functions
	watch     func(fd int) error // makes the recording end when a keeper ends
	late      atomic.Uint64      // number of functions in files that were mapped before their probes were attached

	mu     sync.Mutex
	kept   []*keptProbes
	thread int // thread that the perf events are attached to
	closed bool

	changes  chan struct{}
	stopping chan struct{}
	stopped  sync.Once
	running  sync.WaitGroup
}

// OpenFunctions loads the programs for traced functions. here and after are the programs
// that record stacks for modules. The caller must close the result.
func OpenFunctions(p *plan.Plan, cpus []int, size int, here, after *ebpf.Program) (*Functions, error) {
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
		return nil, err
	}
	if len(p.Options.Modules) > 0 {
		if err := f.Stackers(here, after); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return &Functions{plan: p, functions: f, changes: make(chan struct{}, 1), stopping: make(chan struct{})}, nil
}

// Rings makes a ring for each CPU that the programs of the functions write to. size is in
// bytes. The caller must close the sources.
func (n *Functions) Rings(cpus []int, size int) ([]order.Source, error) {
	sources, err := order.OpenRings(n.functions.Rings(), cpus, size)
	for _, s := range sources {
		s.(*order.RingSource).Functions = n.functions
	}
	return sources, err
}

// attach attaches probes, those at returns first: a return without an entry is ignored,
// but an entry without a return would count as lost.
func (n *Functions) attach(probes []plan.FunctionProbe, thread int) (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.thread = thread
	if len(probes) == 0 || n.closed {
		return nil
	}
	b := functionKit{kit: newKit(n.plan), functions: n.functions, returns: map[fileOffset]*functionReturn{}}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := b.gather(probes); err != nil {
		return err
	}
	kept, err := keep()
	if err != nil {
		return err
	}
	n.kept = append(n.kept, kept)
	if err := kept.equip(b.kit); err != nil {
		return err
	}
	return explainFunction(kept, kept.attach(n.plan.Target.PID, thread))
}

// explainFunction adds the probe to an error of the keeper.
func explainFunction(kept *keptProbes, err error) error {
	g, probe := kept.failed(err)
	switch {
	case g == nil:
		return err
	case g.Multi && len(g.probes) > 1:
		return fmt.Errorf("attach probes to %s and others of %s: %w", probe.Function, probe.Path, err)
	}
	return fmt.Errorf("attach probe to %s in %s: %w", probe.Function, probe.Path, host.PerfRefused(err))
}

// groups returns the groups of all keepers.
func (n *Functions) groups() (all []probeGroup) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, kept := range n.kept {
		all = append(all, kept.groups...)
	}
	return all
}

// replace attaches perf events to another thread, after theirs has ended.
func (n *Functions) replace(thread int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.thread = thread
	for _, kept := range n.kept {
		if err := explainFunction(kept, kept.replace(n.plan.Target.PID, thread)); err != nil {
			return err
		}
	}
	return nil
}

// hold holds the probes of traced functions; see Probes.Hold.
func (n *Functions) hold(tid int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, kept := range n.kept {
		if err := kept.hold(tid); err != nil {
			return err
		}
	}
	return nil
}

// Follow looks for more functions whenever the mappings change. It calls watch for each
// keeper.
func (n *Functions) Follow(watch func(fd int) error) error {
	n.watch = watch
	for _, kept := range n.kept {
		if err := watch(kept.keeper.FD()); err != nil {
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

// Changed requests a look; it never waits.
func (n *Functions) Changed() {
	select {
	case n.changes <- struct{}{}:
	default:
	}
}

// look finds and attaches functions in newly mapped files.
func (n *Functions) look() error {
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
	thread, before := n.thread, len(n.kept)
	n.mu.Unlock()
	if err := n.attach(s.Probes, thread); err != nil {
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

// Losses returns the losses since the last call, and the number of functions whose files
// were mapped before their probes were attached.
func (n *Functions) Losses() (lost functions.Losses, late uint64, err error) {
	lost, err = n.functions.Grown()
	return lost, n.late.Swap(0), err
}

// Disable makes the programs of the functions return at once. Any goroutine may call it.
func (n *Functions) Disable() error { return n.functions.Disable() }

// Stop stops following; it may be called more than once.
func (n *Functions) Stop() {
	n.stopped.Do(func() { close(n.stopping) })
	n.running.Wait()
}

// Close removes the probes and frees everything.
func (n *Functions) Close() error {
	n.Stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	var all []error
	for _, kept := range n.kept {
		all = append(all, kept.keeper.Close())
	}
	n.kept = nil
	return errors.Join(append(all, n.functions.Close())...)
}
