package plan

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/process"
)

// mostLooks is how often chooseLoaded looks at a process that is loading a program, with a
// millisecond between two looks. Such a process may have to wait for a CPU.
const mostLooks = 500

// chooseLoaded calls chooseAllocators, and again if that finds none and the process was
// loading a program meanwhile.
func (p *Plan) chooseLoaded() error {
	for look := 1; ; look++ {
		before, _ := p.Target.Mappings() // if the process has ended, chooseAllocators returns the error
		err := p.chooseAllocators()
		if look == mostLooks || !errors.Is(err, host.ErrNoAllocator) && !errors.Is(err, host.ErrStripped) {
			return err
		}
		after, gone := p.Target.Mappings()
		if gone != nil || slices.EqualFunc(before, after, process.Mapping.Same) && !p.Target.Loading(after) {
			return err
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(p.Target.PIDFD), Events: unix.POLLIN}}, 1) // a millisecond, or until the process ends
		p.allocators, p.functions, p.growths, p.operators, p.internal = nil, nil, nil, nil, nil
	}
}
