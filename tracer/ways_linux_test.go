package tracer

import (
	"errors"
	"fmt"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// way is how a process is traced.
type way struct {
	name string
	set  func(o *Options)
}

// ways lists what the tracer chooses by itself, each mechanism, buffer, place of
// state and way to know sites at least twice, and what the oldest kernels have.
func ways(t *testing.T) []way {
	t.Helper()
	all := []way{{"best", func(*Options) {}}}
	for i, mechanism := range []Mechanism{MechanismMulti, MechanismPerf} {
		for j, buffer := range []Buffer{BufferRing, BufferPerf} {
			state, sites := []State{StateTask, StateHash}[(i+j)%2], []Sites{SitesCookie, SitesAddress}[j]
			all = append(all, newWay(mechanism, buffer, state, sites))
		}
	}
	all = append(all, way{"oldest", oldest})
	if !testutil.Sweep(t) {
		return []way{all[0], all[3], all[5]} // TestEveryCallOfEveryThread has the others
	}
	return all
}

// everyWay lists all that can be chosen.
func everyWay() []way {
	var all []way
	for _, mechanism := range []Mechanism{MechanismMulti, MechanismPerf} {
		for _, buffer := range []Buffer{BufferRing, BufferPerf} {
			for _, state := range []State{StateTask, StateHash} {
				for _, sites := range []Sites{SitesCookie, SitesAddress} {
					all = append(all, newWay(mechanism, buffer, state, sites))
				}
			}
		}
	}
	return all
}

func newWay(mechanism Mechanism, buffer Buffer, state State, sites Sites) way {
	return way{
		name: fmt.Sprintf("%s-%s-%s-%s", mechanism, [...]string{"ring", "perf"}[buffer],
			[...]string{"", "task", "hash"}[state], [...]string{"", "cookie", "address"}[sites]),
		set: func(o *Options) { o.Mechanism, o.Buffer, o.State, o.Sites = mechanism, buffer, state, sites },
	}
}

// oldest is all that the oldest kernels have.
func oldest(o *Options) {
	o.Mechanism, o.State, o.Sites, o.Bounded = MechanismPerf, StateHash, SitesAddress, true
}

// needWay skips the test if it asks for a way that this kernel has not.
func needWay(t *testing.T, o *Options, err error) {
	t.Helper()
	asked := o.Mechanism == MechanismMulti || o.State == StateTask || o.Sites == SitesCookie
	if asked && errors.Is(err, ErrUnsupported) {
		t.Skipf("SKIPPED-KERNEL: %v", err)
	}
}
