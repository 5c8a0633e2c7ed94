package plan

import (
	"slices"

	"github.com/cilium/ebpf"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/process"
)

// Address returns the address of the probe in a process with these mappings, or 0.
func (p *Probe) Address(maps []proc.Map) uint64 {
	at := slices.IndexFunc(maps, func(m proc.Map) bool {
		return process.FileID{Major: m.Major, Minor: m.Minor, Inode: m.Inode} == p.ID && m.Perms&proc.Exec != 0 &&
			p.Offset >= m.Offset && p.Offset-m.Offset < m.End-m.Start
	})
	if at < 0 {
		return 0
	}
	return maps[at].Start + p.Offset - maps[at].Offset
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
func (p *Plan) Placements(o *object.ProbeObjects) []Placement {
	exits, jumps := p.exitProbes()
	calls, results := p.growthProbes()
	return []Placement{
		{Program: o.Leave, Probes: p.Returns(), Ret: true},
		{Program: o.LeaveAt, Probes: exits},
		{Program: o.HandOver, Probes: jumps},
		{Program: o.InternalFree, Probes: p.internal},
		{Program: o.Operate, Probes: p.operatorProbes()},
		{Program: o.Enter, Probes: p.Entries()},
		{Program: o.Grown, Probes: results},
		{Program: o.Grow, Probes: calls},
		{Program: o.MapsChanged, Probes: p.Debugger},
	}
}
