package main

import (
	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/plan"
)

// kernelFlags select which of the kernel's mechanisms are used. They are hidden: tests select
// older mechanisms with them on newer kernels.
type kernelFlags struct {
	mechanism string
	state     string
	sites     string
	sideband  string
	bounded   bool
}

var (
	mechanismsByName = map[string]host.Mechanism{"auto": host.MechanismAuto, "multi": host.MechanismMulti, "perf": host.MechanismPerf}
	statesByName     = map[string]plan.State{"auto": plan.StateAuto, "task": plan.StateTask, "hash": plan.StateHash}
	sitesByName      = map[string]plan.Sites{"auto": plan.SitesAuto, "cookie": plan.SitesCookie, "address": plan.SitesAddress}
	sidebandsByName  = map[string]plan.Sideband{"auto": plan.SidebandAuto, "task": plan.SidebandTask, "machine": plan.SidebandMachine}
)

func (k *kernelFlags) declare(f *pflag.FlagSet) {
	f.Var(flags.Word(&k.mechanism, "auto", "auto", "multi", "perf"), "mechanism", "")
	f.Var(flags.Word(&k.state, "auto", "auto", "task", "hash"), "state", "")
	f.Var(flags.Word(&k.sites, "auto", "auto", "cookie", "address"), "sites", "")
	f.Var(flags.Word(&k.sideband, "auto", "auto", "task", "machine"), "sideband", "")
	f.BoolVar(&k.bounded, "bounded", false, "")
}

// set sets the options of mechanisms.
func (k *kernelFlags) set(o *plan.Options) error {
	o.Mechanism, o.State, o.Sites = mechanismsByName[k.mechanism], statesByName[k.state], sitesByName[k.sites]
	o.Sideband, o.Bounded = sidebandsByName[k.sideband], k.bounded
	return nil
}
