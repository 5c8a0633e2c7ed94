package keeper

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// hold is Keeper.Hold.
func (h *holder) hold(groups []Group) *Error {
	if h.nothing == nil {
		var err error
		if h.nothing, err = doNothing(); err != nil {
			return failed(err)
		}
	}
	for i := range groups {
		if site, err := h.holdGroup(&groups[i]); err != nil {
			e := failed(err)
			e.Group, e.Site = i, site
			return e
		}
	}
	return nil
}

func doNothing() (*ebpf.Program, error) {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "nothing", Type: ebpf.Kprobe, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return nil, fmt.Errorf("load program: %w", err)
	}
	return p, nil
}

// holdGroup returns the index of the site that failed.
func (h *holder) holdGroup(g *Group) (site int, err error) {
	exe, err := link.OpenExecutable(h.file(g))
	if err != nil {
		return 0, err
	}
	for i, s := range g.Sites {
		l, err := exe.Uprobe("", h.nothing, &link.UprobeOptions{Address: s.Offset, PID: g.PID})
		if err != nil {
			return i, err
		}
		h.holds = append(h.holds, l)
	}
	return 0, nil
}
