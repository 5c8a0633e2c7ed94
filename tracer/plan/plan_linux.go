package plan

import (
	"errors"

	"rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/process"
)

// Plan says what a tracer will put where. It is made without touching the
// process, and holds on to it: Close it if it is not given to Open.
type Plan struct {
	Options         Options
	Target          *process.Target
	mechanism       host.Mechanism // never auto
	State           State          // never auto
	Sites           Sites          // never auto
	Bounded         bool           // the kernel has no bpf_loop
	Namespace       *process.PIDNamespace
	allocators      []Allocator // all that were found
	functions       []Function
	growths         []Growth
	operators       []Function            // of C++, that name the calls that they make
	internal        []Probe               // calls of free that the allocator makes for itself
	Debugger        []Probe               // where the dynamic loader tells of new libraries
	FunctionProbes  []FunctionProbe       // of functions that the user names
	Searched        map[SearchedFile]bool // where these were looked for
	ModuleFunctions []functions.Function  // that the modules know
	Open            map[uint32]string     // descriptors from before the trace, for modules: what each is

	Preparation Preparation // until it is loaded
}

// New looks at the process and the kernel and decides what to probe, where
// and how. Its errors wrap the Err… values of this package where one fits.
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
	if err := p.FindFunctions(); err != nil {
		return err
	}
	return p.findLoader()
}

// chooseKernel picks mechanisms by what the kernel has.
func (p *Plan) chooseKernel() error {
	// Tests of features make programs and maps, too.
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
		p.Options.Warnf("stacks are cut at %d frames: this takes a kernel with bpf_loop", MaxBounded)
		p.Options.Depth = MaxBounded
	}
	p.Namespace, err = process.OwnPIDNamespace()
	return err
}

// Returns and entries list the probes by the program that serves them.
func (p *Plan) Returns() []Probe {
	var out []Probe
	for i := range p.functions {
		if f := &p.functions[i]; f.Returns {
			out = append(out, f.Probe)
		}
	}
	return out
}

// Entries lists the probes on the entries of functions.
func (p *Plan) Entries() []Probe {
	var out []Probe
	for i := range p.functions {
		out = append(out, p.functions[i].Probe)
	}
	return out
}

// growthProbes lists the probes on the allocator's calls for memory and behind
// them.
func (p *Plan) growthProbes() (calls, results []Probe) {
	for i := range p.growths {
		calls = append(calls, p.growths[i].Call)
		results = append(results, p.growths[i].Result)
	}
	return calls, results
}

// FunctionNames lists the functions by the number that events carry.
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

// Allocators returns what was found, the first to serve first. The caller must not
// change it.
func (p *Plan) Allocators() []Allocator { return p.allocators }

// Functions returns what is probed. The caller must not change it.
func (p *Plan) Functions() []Function { return p.functions }

// Growths returns the allocator's calls for memory that are probed; none without
// Options.HeapGrowth. The caller must not change it.
func (p *Plan) Growths() []Growth { return p.growths }

// Mechanism returns how the probes are attached; never MechanismAuto.
func (p *Plan) Mechanism() host.Mechanism { return p.mechanism }

// ProcessName returns the command name of the process.
func (p *Plan) ProcessName() string { return p.Target.Name }

// Close lets go of the process. Tracer.Close does it, too.
func (p *Plan) Close() error {
	host.EndPreflight()
	host.EndMeasuring()
	return p.Target.Close()
}
