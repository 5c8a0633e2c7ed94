package plan

import (
	"fmt"
	"maps"
	"slices"

	"rtrace-bpf/tracer/site"
)

// maxReached is the most functions that are looked at to see what a call can lead to.
const maxReached = 4096

// unknown reports whether the function's allocator is none of the known ones, so that a
// pointer may lead to anything. The known ones call the system and their user's hooks through
// pointers, which must not allocate.
func (c *code) unknown(fn *Function) bool { return !fn.known }

// unreachable returns an error if calls of the functions at the addresses can lead to a traced
// function. Its own call would count as well then, because the program keeps no open call.
//
// It follows direct branches through the file, and pointers in the GOT by the names that they
// have, but for functions that never return.
func (c *code) unreachable(im *pathImage, open []uint64) (err error) {
	open = slices.Clone(open)
	seen := map[uint64]bool{} // starts of functions
	defer func() {
		if err == nil {
			maps.Copy(im.harmless, seen)
		}
	}()
	for len(open) > 0 {
		addr := open[len(open)-1]
		open = open[:len(open)-1]
		if name, ok := c.links.target(addr); ok {
			return fmt.Errorf("it may call %s", name)
		}
		if slot, ok := im.stub(addr); ok {
			if err := im.leadsTo(slot); err != nil {
				return err
			}
			continue
		}
		if known, _ := im.callee(addr); known.NoReturn {
			continue
		}
		start, end, ok := im.Bounds(addr)
		if !ok {
			return fmt.Errorf("it may call unknown code at %#x", addr)
		}
		if seen[start] || im.harmless[start] {
			continue
		}
		if seen[start] = true; len(seen) > maxReached {
			return fmt.Errorf("it may call more than %d functions", maxReached)
		}
		body := c.text.between(start, end)
		branches, pointers := site.Leads(c.machine.Arch, body, start)
		for _, b := range branches {
			if b.To < start || b.To >= end {
				open = append(open, b.To)
			}
		}
		for _, p := range pointers {
			if err := im.leadsTo(p.Slot); err != nil {
				return err
			}
		}
	}
	return nil
}

// leadsTo returns an error if the pointer at an address leads to a function that has the name
// of an allocator's.
func (im *pathImage) leadsTo(slot uint64) error {
	if name := im.slots[slot]; slot != 0 && isOfC(name) {
		return fmt.Errorf("it may call %s", name)
	}
	return nil
}
