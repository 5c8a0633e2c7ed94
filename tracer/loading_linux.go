package tracer

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// mostLooks is how often a process is looked at that becomes another program, with a
// millisecond between two looks: it may have to wait for a processor.
const mostLooks = 500

// chooseLoaded chooses allocators, once more if the process was becoming another
// program meanwhile and so had none.
func (p *Plan) chooseLoaded() error {
	for look := 1; ; look++ {
		before, _ := p.target.mappings() // if it has ended, choosing says so
		err := p.chooseAllocators()
		if look == mostLooks || !errors.Is(err, ErrNoAllocator) && !errors.Is(err, ErrStripped) {
			return err
		}
		after, gone := p.target.mappings()
		if gone != nil || slices.EqualFunc(before, after, mapping.same) && !p.target.loading(after) {
			return err
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(p.target.pidfd), Events: unix.POLLIN}}, 1) // or until its end
		p.allocators, p.functions, p.growths, p.operators, p.internal = nil, nil, nil, nil, nil
	}
}
