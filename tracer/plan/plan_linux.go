package plan

import (
	"errors"

	"rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/process"
)

// Plan is the decision what a tracer probes in a process, where and how. It is made without
// touching the process, but has a descriptor of it open: Close the plan, unless a tracer is
// opened with it, whose Close does so.
type Plan struct {
	Options         Options
	Target          *process.Target
	mechanism       host.Mechanism        // never MechanismAuto
	State           State                 // never StateAuto
	Sites           Sites                 // never SitesAuto
	Bounded         bool                  // use the programs for kernels without bpf_loop
	Namespace       *process.PIDNamespace // the tracer's; nil if it is the initial one
	allocators      []Allocator           // all allocators that were found
	functions       []Function            // of the traced allocators
	growths         []Growth
	operators       []Function            // C++ operators that give their names to the calls that they make
	internal        []Probe               // on calls of free that the allocator makes for itself
	Debugger        []Probe               // on the function that the dynamic loader calls when its list changes
	FunctionProbes  []FunctionProbe       // of function tracing and resource modules
	searched        map[searchedFile]bool // searches for these that are done
	ModuleFunctions []functions.Function  // of the resource modules
	Open            map[uint32]string     // for resource modules: what each descriptor was that was open before the trace

	Preparation Preparation // results are ready once they are needed for loading
}

// New looks at the process and the kernel and decides what to probe, where and how. The
// caller closes the plan. Errors wrap the Err… values of package host where one fits.
func New(o Options) (*Plan, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Features == nil {
		o.Features = host.Kernel{}
	}
	t, err := process.Open(o.PID, o.Features)
	if err != nil {
		return nil, err
	}
	p := &Plan{Options: o, Target: t}
	if err := p.decide(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// decide makes all decisions of the plan.
func (p *Plan) decide() error {
	p.Preparation.prepareTypes(p.Options.Features)
	if err := p.chooseKernel(); err != nil {
		return err
	}
	object := p.Target.Machine.Whole
	if p.Bounded {
		object = p.Target.Machine.Bounded
	}
	p.Preparation.prepareObject(p.Options.Features, object)
	if !p.Options.NoMemory {
		if err := p.chooseLoaded(); err != nil {
			return err
		}
		if err := p.chooseOperators(); err != nil {
			return err
		}
	}
	if err := checkReturnProbes(p.Target); err != nil {
		return err
	}
	if err := p.findFunctions(); err != nil {
		return err
	}
	return p.findLoader()
}

// chooseKernel chooses among the kernel's mechanisms: the ones that the options ask for, or
// the best that the kernel has.
func (p *Plan) chooseKernel() error {
	// First, because the tests of features create programs and maps, too.
	if err := host.CheckOpenFiles(); err != nil {
		return err
	}
	if err := host.FreeMemory(); err != nil {
		return err
	}
	f := p.Options.Features
	if err := f.KernelReads(); err != nil {
		return err
	}
	if err := f.Types(); err != nil {
		return err
	}
	if p.Options.Buffer == BufferRing {
		if err := f.RingBuffer(); err != nil {
			return err
		}
	}
	p.Sites = p.Options.Sites
	if p.Sites != SitesAddress {
		err := f.AttachCookie()
		switch {
		case err == nil:
			p.Sites = SitesCookie
		case p.Sites == SitesCookie || !errors.Is(err, host.ErrUnsupported):
			return err
		default:
			p.Options.Logf("sites found by address: %v", err)
			p.Sites = SitesAddress
		}
	}
	p.State = p.Options.State
	if p.State != StateHash {
		err := f.TaskStorage()
		switch {
		case err == nil:
			p.State = StateTask
		case p.State == StateTask || !errors.Is(err, host.ErrUnsupported):
			return err
		default:
			p.Options.Logf("state of threads in a hash: %v", err)
			p.State = StateHash
		}
	}
	p.mechanism = p.Options.Mechanism
	if p.mechanism != host.MechanismPerf {
		err := f.UprobeMulti()
		switch {
		case err == nil:
			p.mechanism = host.MechanismMulti
		case p.mechanism == host.MechanismMulti || !errors.Is(err, host.ErrUnsupported):
			return err
		default:
			p.Options.Logf("one perf event per probe: %v", err)
			p.mechanism = host.MechanismPerf
		}
	}
	if p.mechanism == host.MechanismPerf {
		if err := f.PerfUprobes(); err != nil {
			return err
		}
	}
	err := f.Loop()
	if err != nil && !errors.Is(err, host.ErrUnsupported) {
		return err
	}
	if p.Bounded = p.Options.Bounded || err != nil; p.Bounded && p.Options.Frames() > MaxBounded {
		p.Options.Warnf("stacks are cut at %d frames: deeper ones need a kernel with bpf_loop", MaxBounded)
		p.Options.Depth = MaxBounded
	}
	p.Namespace, err = process.OwnPIDNamespace()
	return err
}

// Returns lists the return probes.
func (p *Plan) Returns() []Probe {
	var out []Probe
	for i := range p.functions {
		if f := &p.functions[i]; f.Returns {
			out = append(out, f.Probe)
		}
	}
	return out
}

// Entries lists the probes on the entries of allocators' functions.
func (p *Plan) Entries() []Probe {
	var out []Probe
	for i := range p.functions {
		out = append(out, p.functions[i].Probe)
	}
	return out
}

// growthProbes lists the probes on the allocator's calls for memory, and those after the
// calls.
func (p *Plan) growthProbes() (calls, results []Probe) {
	for i := range p.growths {
		calls = append(calls, p.growths[i].Call)
		results = append(results, p.growths[i].Result)
	}
	return calls, results
}

// FunctionNames lists the names of functions and operators, by the number that events carry.
func (p *Plan) FunctionNames() []string {
	var out []string
	for i := range p.functions {
		out = append(out, p.functions[i].Name)
	}
	for i := range p.operators {
		out = append(out, p.operators[i].Name)
	}
	return out
}

// Allocators returns all allocators of the process, in the order in which the dynamic loader
// searches their files. The caller must not change the slice.
func (p *Plan) Allocators() []Allocator { return p.allocators }

// Functions returns the functions of allocators that are probed. The caller must not change
// the slice.
func (p *Plan) Functions() []Function { return p.functions }

// Growths returns the allocator's calls for memory that are probed; none without
// Options.HeapGrowth. The caller must not change the slice.
func (p *Plan) Growths() []Growth { return p.growths }

// Mechanism returns how the probes are attached; never MechanismAuto.
func (p *Plan) Mechanism() host.Mechanism { return p.mechanism }

// ProcessName returns the command name of the process.
func (p *Plan) ProcessName() string { return p.Target.Name }

// Close closes the descriptor of the process, and waits until package host has no probe in
// this process and no measurement running. A tracer's Close calls it.
func (p *Plan) Close() error {
	host.EndPreflight()
	host.EndMeasuring()
	return p.Target.Close()
}
