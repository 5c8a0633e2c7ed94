package plan

import (
	"slices"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/tracer/process"
)

// Probe is a place for a breakpoint.
type Probe struct {
	Function string
	Path     string         // the file, as the process names it
	File     string         // the same file, as this process can open it
	Offset   uint64         // in the file
	ID       process.FileID // of the file, as the process has it mapped
	Site     uint64         // packed for the BPF programs, see bpf/records.h; 0 if they need nothing
	text     int            // index in Target.Texts of the code that it is in
	Distance uint64         // bytes from the start of the page where that code begins
}

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

// same reports whether two probes have the same place in the same file and the same packed
// site.
func (p *Probe) same(o Probe) bool {
	return p.ID == o.ID && p.Offset == o.Offset && p.Site == o.Site
}
