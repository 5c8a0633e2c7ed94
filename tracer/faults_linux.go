package tracer

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/plan"
)

// attachFaults has the kernel run the programs for page faults, if they are recorded. It takes
// them away again when this process ends, however it ends.
func (k *kernel) attachFaults(p *plan.Plan) error {
	if !p.Options.Faults {
		return nil
	}
	for _, x := range []struct {
		tracepoint string
		program    *ebpf.Program
	}{
		{"vm_unmapped_area", k.programs.AreaFound},
		{"page_fault_kernel", k.programs.KernelFault},
		{"page_fault_user", k.programs.UserFault},
	} {
		attached, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: x.tracepoint, Program: x.program})
		if err != nil {
			return fmt.Errorf("record page faults: %w: it needs the tracepoint %s (%w)", host.ErrUnsupported, x.tracepoint, err)
		}
		k.faults = append(k.faults, attached)
	}
	return nil
}
