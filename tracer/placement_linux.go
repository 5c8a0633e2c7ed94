package tracer

import (
	"slices"

	"github.com/cilium/ebpf"

	"rtrace-bpf/internal/linux/proc"
)

// address returns where a process with these mappings has the probe, or 0.
func (p *Probe) address(maps []proc.Map) uint64 {
	at := slices.IndexFunc(maps, func(m proc.Map) bool {
		return fileID{major: m.Major, minor: m.Minor, inode: m.Inode} == p.id && m.Perms&proc.Exec != 0 &&
			p.Offset >= m.Offset && p.Offset-m.Offset < m.End-m.Start
	})
	if at < 0 {
		return 0
	}
	return maps[at].Start + p.Offset - maps[at].Offset
}

// placement is probes that run one program.
type placement struct {
	program *ebpf.Program
	probes  []Probe
	ret     bool
}

// placements returns what is to be attached, in this order: the return probes first,
// since a return without an entry is ignored, but an entry without a return would
// count as lost.
func (p *Plan) placements(o *probeObjects) []placement {
	exits, jumps := p.exitProbes()
	calls, results := p.growthProbes()
	return []placement{
		{program: o.Leave, probes: p.returns(), ret: true},
		{program: o.LeaveAt, probes: exits},
		{program: o.HandOver, probes: jumps},
		{program: o.InternalFree, probes: p.internal},
		{program: o.Operate, probes: p.operatorProbes()},
		{program: o.Enter, probes: p.entries()},
		{program: o.Grown, probes: results},
		{program: o.Grow, probes: calls},
		{program: o.MapsChanged, probes: p.debugger},
	}
}
