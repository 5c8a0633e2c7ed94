package plan

import (
	"errors"

	"rtrace-bpf/tracer/host"
)

// Mechanisms are the mechanisms of the kernel that a tracer uses.
type Mechanisms struct {
	Attach  host.Mechanism // how the probes are attached; never MechanismAuto
	State   State          // never StateAuto
	Sites   Sites          // never SitesAuto
	Bounded bool           // use the programs for kernels without bpf_loop
}

// chooseMechanisms returns the mechanisms that the options ask for, or the best that the
// kernel has. It lowers o.Depth to what kernels without bpf_loop can unwind.
func chooseMechanisms(o *Options) (m Mechanisms, err error) {
	// First, because the tests of features create programs and maps, too.
	if err := host.CheckOpenFiles(); err != nil {
		return m, err
	}
	if err := host.FreeMemory(); err != nil {
		return m, err
	}
	f := o.Features
	if err := f.KernelReads(); err != nil {
		return m, err
	}
	if err := f.Types(); err != nil {
		return m, err
	}
	if o.Buffer == BufferRing {
		if err := f.RingBuffer(); err != nil {
			return m, err
		}
	}
	if m.Sites, err = chooseBetter(o, o.Sites, SitesCookie, SitesAddress, f.AttachCookie, "sites found by address: %v"); err != nil {
		return m, err
	}
	if m.State, err = chooseBetter(o, o.State, StateTask, StateHash, f.TaskStorage, "state of threads in a hash: %v"); err != nil {
		return m, err
	}
	if m.Attach, err = chooseBetter(o, o.Mechanism, host.MechanismMulti, host.MechanismPerf, f.UprobeMulti, "one perf event per probe: %v"); err != nil {
		return m, err
	}
	if m.Attach == host.MechanismPerf {
		if err := f.PerfUprobes(); err != nil {
			return m, err
		}
	}
	err = f.Loop()
	if err != nil && !errors.Is(err, host.ErrUnsupported) {
		return m, err
	}
	if m.Bounded = o.Bounded || err != nil; m.Bounded && o.Frames() > MaxBounded {
		o.Warnf("stacks are cut at %d frames: deeper ones need a kernel with bpf_loop", MaxBounded)
		o.Depth = MaxBounded
	}
	return m, nil
}

// chooseBetter returns the better of two mechanisms unless asked names the other one, or unless
// asked leaves the choice open and has returns host.ErrUnsupported, which it logs as text.
// It returns any other error of has.
func chooseBetter[M comparable](o *Options, asked, better, other M, has func() error, text string) (M, error) {
	if asked == other {
		return other, nil
	}
	err := has()
	switch {
	case err == nil:
		return better, nil
	case asked == better || !errors.Is(err, host.ErrUnsupported):
		return asked, err
	}
	o.Logf(text, err)
	return other, nil
}
