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
	type tracepoint struct {
		name    string
		program *ebpf.Program
	}
	all := []tracepoint{{"vm_unmapped_area", k.programs.AreaFound}}
	if !p.Options.FaultEvents() {
		all = append(all, tracepoint{"page_fault_kernel", k.programs.KernelFault}, tracepoint{"page_fault_user", k.programs.UserFault})
	}
	for _, x := range all {
		attached, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: x.name, Program: x.program})
		if err != nil {
			return fmt.Errorf("record page faults: %w: it needs the tracepoint %s (%w)", host.ErrUnsupported, x.name, err)
		}
		k.faults = append(k.faults, attached)
	}
	if !p.Options.FaultEvents() {
		return nil
	}
	events, err := openFaultEvents(p.Target.PID, &k.programs.ProbeObjects)
	k.faults = append(k.faults, events)
	if err != nil {
		return fmt.Errorf("record page faults: %w", err)
	}
	k.losses.Faults = events.Missed
	return nil
}
