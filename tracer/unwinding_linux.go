package tracer

import (
	"errors"

	"rtrace-bpf/tracer/mapofmaps"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/programs"
	"rtrace-bpf/tracer/tables"
)

// unwinding is what the programs know of the process: where its allocators are, and its
// unwind tables.
type unwinding struct {
	registry tables.Registry
	tables   *tables.Tables   // nil if there are no unwind tables
	follower *tables.Follower // likewise
}

// register writes the process's entry for the programs, and installs its unwind tables,
// before the first program runs.
func (u *unwinding) register(p *plan.Plan, to *programs.Programs) error {
	t := p.Target
	u.registry = tables.Registry{PID: uint32(t.PID), Targets: to.Targets, Renew: to.Switch.Renew}
	for i := range t.Texts {
		x := &u.registry.Process.Texts[i]
		x.Start, x.End = t.Texts[i].Code.Start, t.Texts[i].Code.End
	}
	if p.Options.Frames() == 0 || !p.Options.Unwind.Tables() {
		return u.registry.Put()
	}
	var err error
	if u.tables, err = tables.New(mapofmaps.New(to.Tables), to.Rules, to.Inner.Table); err != nil {
		return err
	}
	u.follower = tables.NewFollower(&tables.Space{
		Target: t, Tables: u.tables, Outer: mapofmaps.New(to.Spaces), Inner: to.Inner.Space,
		Log: p.Options.Logf, Warn: p.Options.Warnf,
	}, u.registry.Remap)
	return u.follower.Look()
}

// relocate records that the code of an allocator, given its number, moved.
func (u *unwinding) relocate(number int, code process.Extent) error {
	return u.registry.Relocate(number, code)
}

// installed returns the mappings whose unwind tables are in the kernel, and whether the
// programs use tables.
func (u *unwinding) installed() (all []process.Mapping, tables bool) {
	if u.follower == nil {
		return nil, false
	}
	return u.follower.Space.Mappings(), true
}

// start starts to follow the mappings of the process.
func (u *unwinding) start() {
	if u.follower != nil {
		u.follower.Start()
	}
}

// Close stops following and frees the tables.
func (u *unwinding) Close() error {
	var all []error
	if u.follower != nil {
		all = append(all, u.follower.Close())
	}
	if u.tables != nil {
		all = append(all, u.tables.Close())
	}
	return errors.Join(all...)
}
