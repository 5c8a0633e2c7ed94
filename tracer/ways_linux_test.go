package tracer

import (
	"errors"
	"fmt"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/plan"
)

// way is how a process is traced.
type way struct {
	name string
	set  func(o *plan.Options)
}

// ways lists what the tracer chooses by itself; each mechanism, buffer, place of state
// and way to find sites at least twice; and what the oldest kernels have.
func ways(t *testing.T) []way {
	t.Helper()
	all := []way{{"best", func(*plan.Options) {}}}
	for i, mechanism := range []host.Mechanism{host.MechanismMulti, host.MechanismPerf} {
		for j, buffer := range []plan.Buffer{plan.BufferRing, plan.BufferPerf} {
			state, sites := []plan.State{plan.StateTask, plan.StateHash}[(i+j)%2], []plan.Sites{plan.SitesCookie, plan.SitesAddress}[j]
			all = append(all, newWay(mechanism, buffer, state, sites))
		}
	}
	all = append(all, way{"oldest", oldest})
	if !testutil.Sweep(t) {
		return []way{all[0], all[3], all[5]} // TestEveryCallOfEveryThread has the others
	}
	return all
}

// everyWay lists all combinations that can be chosen.
func everyWay() []way {
	var all []way
	for _, mechanism := range []host.Mechanism{host.MechanismMulti, host.MechanismPerf} {
		for _, buffer := range []plan.Buffer{plan.BufferRing, plan.BufferPerf} {
			for _, state := range []plan.State{plan.StateTask, plan.StateHash} {
				for _, sites := range []plan.Sites{plan.SitesCookie, plan.SitesAddress} {
					all = append(all, newWay(mechanism, buffer, state, sites))
				}
			}
		}
	}
	return all
}

func newWay(mechanism host.Mechanism, buffer plan.Buffer, state plan.State, sites plan.Sites) way {
	return way{
		name: fmt.Sprintf("%s-%s-%s-%s", mechanism, [...]string{"ring", "perf"}[buffer],
			[...]string{"", "task", "hash"}[state], [...]string{"", "cookie", "address"}[sites]),
		set: func(o *plan.Options) { o.Mechanism, o.Buffer, o.State, o.Sites = mechanism, buffer, state, sites },
	}
}

// oldest selects what the oldest kernels have.
func oldest(o *plan.Options) {
	o.Mechanism, o.State, o.Sites, o.Bounded = host.MechanismPerf, plan.StateHash, plan.SitesAddress, true
}

// needWay skips the test if this kernel does not support the way that it requests.
func needWay(t *testing.T, o *plan.Options, err error) {
	t.Helper()
	asked := o.Mechanism == host.MechanismMulti || o.State == plan.StateTask || o.Sites == plan.SitesCookie
	if asked && errors.Is(err, host.ErrUnsupported) {
		t.Skipf("SKIPPED-KERNEL: %v", err)
	}
}
