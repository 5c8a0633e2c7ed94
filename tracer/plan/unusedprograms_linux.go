package plan

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Empty replaces the code of the programs in spec that the plan does not need by a return,
// to spare the verifier the work. Two programs with an unwinder each are most of the cost of
// a start, and few processes need both.
func (p *Plan) Empty(spec *ebpf.CollectionSpec) {
	for _, name := range p.unused() {
		spec.Programs[name].Instructions = asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}
	}
}

// unused returns the names of the programs that no probe of the plan runs and no other
// program needs.
func (p *Plan) unused() []string {
	var names []string
	if len(p.Options.Modules) == 0 {
		names = append(names, "call_stack", "returned_stack")
	}
	if p.Options.Testing.EveryProgram {
		return names
	}
	exits, jumps := p.exitProbes()
	calls, results := p.growthProbes()
	for name, probes := range map[string][]Probe{
		"leave": p.Returns(), "leave_at": exits, "hand_over": jumps, "internal_free": p.internal,
		"operate": p.operatorProbes(), "grow": calls, "grown": results, "maps_changed": p.Debugger,
	} {
		if len(probes) == 0 {
			names = append(names, name)
		}
	}
	return names
}
