package plan

import (
	"errors"
	"fmt"

	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/process"
)

// Plan is the decision what a tracer probes in a process, where and how. It is made without
// touching the process, but has a descriptor of it open: Close the plan, unless a tracer is
// opened with it, whose Close does so.
type Plan struct {
	Options    Options
	Target     *process.Target
	Mechanisms Mechanisms
	Namespace  *process.PIDNamespace // the tracer's; nil if it is the initial one
	Memory     Memory                // what is probed in the allocators; the caller must not change it
	Layout     Layout                // the probes of Memory and of the dynamic loader, by program
	Functions  TracedFunctions       // of function tracing and resource modules
	Open       map[uint32]string     // for resource modules: what each descriptor was that was open before the trace

	Preparation Preparation // for loading the programs
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
func (p *Plan) decide() (err error) {
	o := &p.Options
	p.Preparation.prepareTypes(o.Features)
	if p.Mechanisms, err = chooseMechanisms(o); err != nil {
		return err
	}
	if p.Namespace, err = process.OwnPIDNamespace(); err != nil {
		return err
	}
	object := p.Target.Machine.Whole
	if p.Mechanisms.Bounded {
		object = p.Target.Machine.Bounded
	}
	p.Preparation.prepareObject(o.Features, object)
	if !o.NoMemory {
		if p.Memory, err = findMemory(o, p.Target, p.Mechanisms.Sites); err != nil {
			return err
		}
	}
	if err := checkReturnProbes(p.Target); err != nil {
		return err
	}
	if o.Calls() {
		if p.Functions, err = findFunctions(o, p.Target); err != nil {
			return err
		}
	}
	loader, err := findLoader(p.Target)
	if err != nil {
		return err
	}
	if len(loader) == 0 {
		o.Logf("no dynamic loader: unmapped libraries are noticed late")
	}
	p.Layout = newLayout(&p.Memory, loader, p.Mechanisms.Sites, o.VerifySites > 0)
	return nil
}

// ProcessName returns the command name of the process.
func (p *Plan) ProcessName() string { return p.Target.Name }

// Close closes the descriptor of the process, and waits until package host has no probe in
// this process and no measurement running. A tracer's Close calls it.
func (p *Plan) Close() error {
	host.EndPreflight()
	host.EndMeasuring()
	return p.Target.Close()
}

// SiteName returns the name of the function, and the file and the address in it, of the site
// inside a function that is at an address of the process; for messages.
func (p *Plan) SiteName(addr uint64) string {
	for i := range p.Memory.Functions {
		for _, s := range p.Memory.Functions[i].paths.sites {
			for _, t := range p.Target.Texts {
				if t.File == s.probe.ID && addr-t.Code.Start == s.Addr-t.Base {
					return fmt.Sprintf("%s of %s at %#x", p.Memory.Functions[i].Name, s.probe.Path, s.Addr)
				}
			}
		}
	}
	return fmt.Sprintf("%#x", addr)
}
