package plan

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/process"
)

// mostLooks is how often a process is looked at that becomes another program, with a
// millisecond between two looks: it may have to wait for a processor.
const mostLooks = 500

// chooseLoaded chooses allocators, once more if the process was becoming another
// program meanwhile and so had none.
func (p *Plan) chooseLoaded() error {
	for look := 1; ; look++ {
		before, _ := p.Target.Mappings() // if it has ended, choosing says so
		err := p.chooseAllocators()
		if look == mostLooks || !errors.Is(err, host.ErrNoAllocator) && !errors.Is(err, host.ErrStripped) {
			return err
		}
		after, gone := p.Target.Mappings()
		if gone != nil || slices.EqualFunc(before, after, process.Mapping.Same) && !p.Target.Loading(after) {
			return err
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(p.Target.PIDFD), Events: unix.POLLIN}}, 1) // or until its end
		p.allocators, p.functions, p.growths, p.operators, p.internal = nil, nil, nil, nil, nil
	}
}
