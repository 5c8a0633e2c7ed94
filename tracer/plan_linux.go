package tracer

import (
	"errors"

	"rtrace-bpf/tracer/functions"
)

// Plan says what a tracer will put where. It is made without touching the
// process, and holds on to it: Close it if it is not given to Open.
type Plan struct {
	options    Options
	target     *target
	mechanism  Mechanism // never auto
	state      State     // never auto
	sites      Sites     // never auto
	bounded    bool      // the kernel has no bpf_loop
	namespace  *pidNamespace
	allocators []Allocator // all that were found
	functions  []Function
	growths    []Growth
	operators  []Function           // of C++, that name the calls that they make
	internal   []Probe              // calls of free that the allocator makes for itself
	debugger   []Probe              // where the dynamic loader tells of new libraries
	named      []namedProbe         // of functions that the user names
	namedFound map[namedFile]bool   // where these were looked for
	known      []functions.Function // that the modules know
	open       map[uint32]string    // descriptors from before the trace, for modules: what each is

	preparation preparation // until it is loaded
}

// NewPlan looks at the process and the kernel and decides what to probe, where
// and how. Its errors wrap the Err… values of this package where one fits.
func NewPlan(o Options) (*Plan, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Features == nil {
		o.Features = kernelFeatures{}
	}
	t, err := openTarget(o.PID, o.Features)
	if err != nil {
		return nil, err
	}
	p := &Plan{options: o, target: t}
	if err := p.decide(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Plan) decide() error {
	p.preparation.prepareTypes(p.options.Features)
	if err := p.chooseKernel(); err != nil {
		return err
	}
	object := p.target.machine.whole
	if p.bounded {
		object = p.target.machine.bounded
	}
	p.preparation.prepareObject(p.options.Features, object)
	if !p.options.NoMemory {
		if err := p.chooseLoaded(); err != nil {
			return err
		}
		if err := p.chooseOperators(); err != nil {
			return err
		}
	}
	if err := checkReturnProbes(p.target); err != nil {
		return err
	}
	if err := p.findNamed(); err != nil {
		return err
	}
	return p.findLoader()
}

// chooseKernel picks mechanisms by what the kernel has.
func (p *Plan) chooseKernel() error {
	// Tests of features make programs and maps, too.
	if err := checkOpenFiles(); err != nil {
		return err
	}
	if err := freeMemory(); err != nil {
		return err
	}
	f := p.options.Features
	if err := f.KernelReads(); err != nil {
		return err
	}
	if err := f.Types(); err != nil {
		return err
	}
	if p.options.Buffer == BufferRing {
		if err := f.RingBuffer(); err != nil {
			return err
		}
	}
	p.sites = p.options.Sites
	if p.sites != SitesAddress {
		err := f.AttachCookie()
		switch {
		case err == nil:
			p.sites = SitesCookie
		case p.sites == SitesCookie || !errors.Is(err, ErrUnsupported):
			return err
		default:
			p.options.logf("sites found by address: %v", err)
			p.sites = SitesAddress
		}
	}
	p.state = p.options.State
	if p.state != StateHash {
		err := f.TaskStorage()
		switch {
		case err == nil:
			p.state = StateTask
		case p.state == StateTask || !errors.Is(err, ErrUnsupported):
			return err
		default:
			p.options.logf("state of threads in a hash: %v", err)
			p.state = StateHash
		}
	}
	p.mechanism = p.options.Mechanism
	if p.mechanism != MechanismPerf {
		err := f.UprobeMulti()
		switch {
		case err == nil:
			p.mechanism = MechanismMulti
		case p.mechanism == MechanismMulti || !errors.Is(err, ErrUnsupported):
			return err
		default:
			p.options.logf("one perf event per probe: %v", err)
			p.mechanism = MechanismPerf
		}
	}
	if p.mechanism == MechanismPerf {
		if err := f.PerfUprobes(); err != nil {
			return err
		}
	}
	err := f.Loop()
	if err != nil && !errors.Is(err, ErrUnsupported) {
		return err
	}
	if p.bounded = p.options.Bounded || err != nil; p.bounded && p.options.frames() > MaxBounded {
		p.options.warnf("stacks are cut at %d frames: this takes a kernel with bpf_loop", MaxBounded)
		p.options.Depth = MaxBounded
	}
	p.namespace, err = ownPIDNamespace()
	return err
}

// returns and entries list the probes by the program that serves them.
func (p *Plan) returns() []Probe {
	var out []Probe
	for i := range p.functions {
		if f := &p.functions[i]; f.Returns {
			out = append(out, f.Probe)
		}
	}
	return out
}

// entries lists the probes on the entries of functions.
func (p *Plan) entries() []Probe {
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

// functionNames lists the functions by the number that events carry.
func (p *Plan) functionNames() []string {
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
func (p *Plan) Mechanism() Mechanism { return p.mechanism }

// ProcessName returns the command name of the process.
func (p *Plan) ProcessName() string { return p.target.name }

// Close lets go of the process. Tracer.Close does it, too.
func (p *Plan) Close() error {
	endPreflight()
	endMeasuring()
	return p.target.Close()
}
