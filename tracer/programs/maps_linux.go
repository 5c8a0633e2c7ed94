package programs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"

	"github.com/cilium/ebpf"

	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/plan"
)

// makeMaps makes the maps of a plan and returns the programs that remain to be loaded.
func (p *Programs) makeMaps(from *plan.Plan, cpus []int) (*loader, error) {
	o := from.Options
	spec, err := from.Preparation.Object()
	if err != nil {
		return nil, fmt.Errorf("read BPF object: %w", err)
	}
	ringSize := o.RingBytes(len(cpus))
	settings := map[string]any{
		"cfg_task_storage":  from.Mechanisms.State == plan.StateTask,
		"cfg_no_storage":    o.Testing.NoStorage,
		"cfg_cookies":       from.Mechanisms.Sites == plan.SitesCookie,
		"cfg_perf_buffer":   o.Buffer == plan.BufferPerf,
		"cfg_backtrace_all": o.BacktraceAll,
		"cfg_args":          o.Args,
		"cfg_min_size":      o.MinSize,
		"cfg_depth":         uint32(o.Frames()),
		"cfg_unwind":        o.Unwind.BPF(),
		"cfg_verify":        uint32(o.VerifyUnwind),
		"cfg_verify_sites":  uint32(o.VerifySites),
		"cfg_inside":        from.Layout.OneProgram,
		"cfg_stack_cache":   o.Unwind != plan.UnwindHelper && !o.Testing.NoStackCache,
		"cfg_wake_at":       uint64(ringSize / 2),
		"cfg_page_size":     uint64(os.Getpagesize()),
		"cfg_address_mask":  uint64(1)<<from.Target.AddressBits - 1,
	}
	if from.Namespace == nil {
		settings["cfg_fault_pid"] = uint32(from.Target.PID)
	}
	// bpf_task_pt_regs came with cookies, and all kernels for arm64 that can be traced have both.
	settings["cfg_task_regs"] = from.Mechanisms.Sites == plan.SitesCookie || runtime.GOARCH == "arm64"
	if ns := from.Namespace; ns != nil {
		settings["cfg_pid_namespace"] = true
		settings["cfg_pidns_dev"] = ns.Dev
		settings["cfg_pidns_ino"] = ns.Inode
	}
	for name, value := range settings {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("set %s: %w", name, err)
		}
	}
	spec.Maps["rings"].MaxEntries = uint32(cpus[len(cpus)-1] + 1)
	spec.Maps["rings"].InnerMap.MaxEntries = uint32(ringSize)
	spec.Maps["perf_rings"].MaxEntries = uint32(cpus[len(cpus)-1] + 1)
	if from.Mechanisms.State == plan.StateTask {
		spec.Maps["threads_by_tid"].MaxEntries = plan.SparedThreads
	} else {
		// The programs do not use the map then, but the kernel requires one.
		t := spec.Maps["threads"]
		t.Type, t.MaxEntries, t.Key, t.Value = ebpf.Hash, 1, nil, nil
		t.KeySize = 4
		spec.Maps["threads_by_tid"].MaxEntries = plan.HashedThreads
	}
	if o.Testing.FewThreads > 0 {
		spec.Maps["threads_by_tid"].MaxEntries = o.Testing.FewThreads
	}
	if from.Mechanisms.Sites == plan.SitesAddress {
		spec.Maps["sites"].MaxEntries = max(1, uint32(len(from.Layout.SiteTable())))
	}
	if o.VerifySites > 0 {
		spec.Maps["site_checks"].MaxEntries = plan.HashedThreads
	}
	if from.Mechanisms.Bounded || o.Frames() == 0 {
		spec.Maps["stack_cache"].MaxEntries = 1
	}
	p.Inner = InnerMaps{Table: spec.Maps["tables"].InnerMap, Space: spec.Maps["spaces"].InnerMap}
	from.Layout.Empty(spec, &from.Options)
	if from.Mechanisms.Attach == host.MechanismMulti {
		for _, program := range spec.Programs {
			if program.Type == ebpf.Kprobe {
				program.AttachType = ebpf.AttachTraceUprobeMulti
			}
		}
	}
	made := &loader{
		specs: spec.Programs, types: from.Preparation.Types,
		options: ebpf.ProgramOptions{LogLevel: o.Testing.VerifierLog},
	}
	spec.Programs = nil
	if made.own, err = ebpf.NewCollection(spec); err != nil {
		return nil, loadError(err)
	}
	made.maps = maps.Clone(made.own.Maps)
	if err := errors.Join(made.own.Assign(&p.ProbeMaps), made.own.Assign(&p.ProbeVariables)); err != nil {
		return nil, errors.Join(loadError(err), made.Close())
	}
	p.Switch.objects = &p.ProbeVariables
	return made, nil
}
