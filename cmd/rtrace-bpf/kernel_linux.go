package main

import (
	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/tracer"
)

// kernelFlags select which of the kernel's mechanisms are used. Tests use these hidden
// flags on kernels that have better ones.
type kernelFlags struct {
	mechanism string
	state     string
	sites     string
	sideband  string
	bounded   bool
}

var (
	mechanismsByName = map[string]tracer.Mechanism{"auto": tracer.MechanismAuto, "multi": tracer.MechanismMulti, "perf": tracer.MechanismPerf}
	statesByName     = map[string]tracer.State{"auto": tracer.StateAuto, "task": tracer.StateTask, "hash": tracer.StateHash}
	sitesByName      = map[string]tracer.Sites{"auto": tracer.SitesAuto, "cookie": tracer.SitesCookie, "address": tracer.SitesAddress}
	sidebandsByName  = map[string]tracer.Sideband{"auto": tracer.SidebandAuto, "task": tracer.SidebandTask, "machine": tracer.SidebandMachine}
)

func (k *kernelFlags) declare(f *pflag.FlagSet) {
	f.Var(flags.Word(&k.mechanism, "auto", "auto", "multi", "perf"), "mechanism", "")
	f.Var(flags.Word(&k.state, "auto", "auto", "task", "hash"), "state", "")
	f.Var(flags.Word(&k.sites, "auto", "auto", "cookie", "address"), "sites", "")
	f.Var(flags.Word(&k.sideband, "auto", "auto", "task", "machine"), "sideband", "")
	f.BoolVar(&k.bounded, "bounded", false, "")
}

// set sets the options of mechanisms.
func (k *kernelFlags) set(o *tracer.Options) error {
	o.Mechanism, o.State, o.Sites = mechanismsByName[k.mechanism], statesByName[k.state], sitesByName[k.sites]
	o.Sideband, o.Bounded = sidebandsByName[k.sideband], k.bounded
	return nil
}
