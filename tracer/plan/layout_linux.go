package plan

import (
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/site/cover"
)

// Layout is the probes of allocators and of the dynamic loader, by the BPF program that they
// run.
type Layout struct {
	Entries   []Probe // on the entries of allocators' functions, by their number
	Returns   []Probe // return probes on the same sites
	Inside    []Probe // inside functions that allocate, in place of entry and return
	checked   []Probe // on the entries of these functions, and with a return probe: Options.VerifySites
	exits     []Probe // on the return instructions of operators
	jumps     []Probe // on their jumps to traced functions
	operators []Probe // on the operators that give their names
	internal  []Probe // on calls of free that the allocator makes for itself
	calls     []Probe // on the allocator's calls for memory
	results   []Probe // after these calls
	Loader    []Probe // on the function that the dynamic loader calls when its list changes

	// OneProgram reports that the program of return probes also serves the sites inside
	// functions. It distinguishes them by their cookies.
	OneProgram bool
}

// newLayout returns the layout of what was found in the allocators, and of the loader's
// probes.
func newLayout(m *Memory, loader []Probe, sites Sites, verify bool) Layout {
	l := Layout{internal: m.internal, Loader: loader}
	for i := range m.Functions {
		f := &m.Functions[i]
		if f.paths.covered() {
			l.addPaths(f, verify)
			continue
		}
		l.Entries = append(l.Entries, f.Probe)
		if f.Returns {
			l.Returns = append(l.Returns, f.Probe)
		}
		if f.ends != nil {
			l.exits = append(l.exits, f.ends.returns...)
			l.jumps = append(l.jumps, f.ends.jumps...)
		}
	}
	for i := range m.Operators {
		if op := &m.Operators[i]; !op.ambiguous {
			l.operators = append(l.operators, op.Probe)
		}
	}
	for i := range m.Growths {
		l.calls = append(l.calls, m.Growths[i].Call)
		l.results = append(l.results, m.Growths[i].Result)
	}
	l.OneProgram = len(l.Inside) > 0 && sites == SitesCookie
	return l
}

// addPaths adds the probes inside a function.
func (l *Layout) addPaths(f *Function, verify bool) {
	for i := range f.paths.sites {
		s := &f.paths.sites[i]
		if s.Role == cover.Return {
			l.Entries, l.Returns = append(l.Entries, s.probe), append(l.Returns, s.probe)
		} else {
			l.Inside = append(l.Inside, s.probe)
		}
	}
	if verify {
		l.checked = append(l.checked, f.Probe)
	}
}

// Placement is a BPF program and the probes that run it.
type Placement struct {
	Program *ebpf.Program
	Probes  []Probe
	Ret     bool // they are return probes
}

// Placements returns the placements of the programs in o, in the order in which to attach
// them. Return probes come first: a return without an entry is ignored, but an entry without
// a return would count as lost.
func (l *Layout) Placements(o *object.ProbeObjects) []Placement {
	inside := o.Pass
	if l.OneProgram {
		inside = o.Leave
	}
	return []Placement{
		{Program: o.Compare, Probes: l.checked, Ret: true},
		{Program: o.Leave, Probes: l.Returns, Ret: true},
		{Program: inside, Probes: l.Inside},
		{Program: o.LeaveAt, Probes: l.exits},
		{Program: o.HandOver, Probes: l.jumps},
		{Program: o.InternalFree, Probes: l.internal},
		{Program: o.Operate, Probes: l.operators},
		{Program: o.Expect, Probes: l.checked},
		{Program: o.Enter, Probes: l.Entries},
		{Program: o.Grown, Probes: l.results},
		{Program: o.Grow, Probes: l.calls},
		{Program: o.MapsChanged, Probes: l.Loader},
	}
}

// Empty replaces the code of the programs in spec that the plan does not need by a return,
// to spare the verifier the work. Two programs with an unwinder each are most of the cost of
// a start, and few processes need both.
func (l *Layout) Empty(spec *ebpf.CollectionSpec, o *Options) {
	for _, name := range l.unused(o) {
		spec.Programs[name].Instructions = asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}
	}
}

// unused returns the names of the programs that no probe of the plan runs and no other
// program needs.
func (l *Layout) unused(o *Options) []string {
	var names []string
	if len(o.Modules) == 0 {
		names = append(names, "call_stack", "returned_stack")
	}
	switch {
	case !o.Faults:
		names = append(names, "user_fault", "kernel_fault", "counted_fault", "area_found")
	case o.FaultEvents():
		names = append(names, "user_fault", "kernel_fault")
	default:
		names = append(names, "counted_fault")
	}
	if o.Testing.EveryProgram {
		return names
	}
	returns, inside := l.Returns, l.Inside
	if l.OneProgram {
		returns, inside = slices.Concat(returns, inside), nil
	}
	for name, probes := range map[string][]Probe{
		"leave": returns, "leave_at": l.exits, "hand_over": l.jumps, "internal_free": l.internal,
		"operate": l.operators, "grow": l.calls, "grown": l.results, "maps_changed": l.Loader,
		"pass": inside, "expect": l.checked, "compare": l.checked,
	} {
		if len(probes) == 0 {
			names = append(names, name)
		}
	}
	return names
}

// covers reports whether the layout has each place of another one, with the same packed site.
func (l *Layout) covers(o *Layout) bool {
	var none object.ProbeObjects
	had, want := l.Placements(&none), o.Placements(&none)
	for i := range want {
		for j := range want[i].Probes {
			if !slices.ContainsFunc(had[i].Probes, want[i].Probes[j].same) {
				return false
			}
		}
	}
	return true
}
