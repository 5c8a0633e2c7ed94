package programs

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"

	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/plan"
)

// Programs are the programs and maps of a tracer in the kernel. The zero value has none;
// Load loads them.
type Programs struct {
	object.ProbeObjects
	Switch Switch
	Inner  InnerMaps
}

// InnerMaps describes the maps that are made while tracing.
type InnerMaps struct {
	Table, Space *ebpf.MapSpec
}

// Load makes the maps, and loads the programs while it runs the steps in parallel, which
// do not need the programs. Each takes some ten milliseconds. The caller must call Close,
// after an error too.
func (p *Programs) Load(from *plan.Plan, cpus []int, parallel ...func() error) error {
	l, err := p.makeMaps(from, cpus)
	if err != nil {
		return err
	}
	loading := func() error { return l.load(&p.ProbePrograms) }
	err = atOnce(append([]func() error{loading}, parallel...)...)
	from.Preparation = plan.Preparation{} // it is large
	return errors.Join(err, l.Close())
}

// PutSites writes the table of probe sites if the programs find sites by address.
func (p *Programs) PutSites(from *plan.Plan) error {
	if from.Mechanisms.Sites != plan.SitesAddress {
		return nil
	}
	for key, packed := range from.Layout.SiteTable() {
		if err := p.Sites.Put(key, packed); err != nil {
			return fmt.Errorf("describe sites: %w", err)
		}
	}
	return nil
}

// Forget deletes the programs' state for a thread that has ended. The kernel frees task
// storage itself.
func (p *Programs) Forget(tid uint32) {
	// There is no entry if the thread made no calls, or had task storage.
	_ = p.ThreadsByTid.Delete(tid)
}

// Hits returns how often the probes were hit and pages touched up to now, and the time inside the programs.
// It may be called from any goroutine until Close.
func (p *Programs) Hits() (host.Hits, error) {
	const timedOf = 31 // TIMED_OF of bpf/records.h
	var n [4]uint64
	var perCPU []uint64
	for i, kind := range [...]object.ProbeWorkKind{object.ProbeWorkKindWORK_HIT, object.ProbeWorkKindWORK_RETURN, object.ProbeWorkKindWORK_FAULT, object.ProbeWorkKindWORK_TIME} {
		if err := p.Work.Lookup(uint32(kind), &perCPU); err != nil {
			return host.Hits{}, fmt.Errorf("read hits of probes: %w", err)
		}
		for _, of := range perCPU {
			n[i] += of
		}
	}
	return host.Hits{Entries: n[0], Returns: n[1], Faults: n[2], Inside: time.Duration(n[3] * timedOf)}, nil
}

// Close frees the programs and maps.
func (p *Programs) Close() error {
	if p.Targets == nil {
		return nil // nothing was loaded
	}
	return p.ProbeObjects.Close()
}
