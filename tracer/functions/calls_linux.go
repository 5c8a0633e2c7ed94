package functions

import "slices"

// Calls finds out which return belongs to which entry. It must get the events of all threads,
// those of one thread in order.
//
// A call is identified by the place of its return address on the stack. When a thread is at a
// frame further out, frames further in are gone. This holds as long as a thread keeps to one
// stack, or to stacks below the one that it came from.
type Calls struct {
	page    uint64 // in bytes
	threads map[uint32][]open
}

// open is a call that has not returned.
type open struct {
	site       *site
	slot       uint64
	pc, caller uint64
	entry      *Event // for functions of package modules
}

// NewCalls returns a Calls for a kernel with the given page size in bytes.
func NewCalls(page int) *Calls {
	return &Calls{page: uint64(page), threads: map[uint32][]open{}}
}

// Enter records an entry, and fills in its caller. It returns how many calls were left without a
// return since the last event of the thread.
func (c *Calls) Enter(e *Event) (missed int) {
	list, missed := c.drop(e.TID, e.Slot)
	for n := len(list); n > 0 && list[n-1].slot == e.Slot; n-- {
		if c.jumps(&list[n-1], e) {
			break
		}
		// The last open call has ended in a jump, and this call takes its place.
		list = list[:n-1]
		missed++
	}
	if e.Function.Result != 0 { // otherwise no event marks its return
		x := open{site: e.site, slot: e.Slot, pc: e.PC, caller: e.Caller}
		if e.Function.Module != 0 {
			entry := *e
			x.entry = &entry
		}
		list = append(list, x)
	}
	c.put(e.TID, list)
	return missed
}

// jumps reports whether the function of an open call has ended in a jump to the function that is
// entered, with the same place for the return address.
func (c *Calls) jumps(x *open, e *Event) bool {
	if e.Caller != 0 && e.Caller&(c.page-1) == 0 {
		// The return address is the kernel's stub, through which the function that has jumped
		// returns. Its own return address is known from its entry.
		e.Caller = x.caller
		return x.site.stub
	}
	if x.caller != e.Caller || x.site.stub {
		return false
	}
	return x.site.jumps && x.site != e.site
}

// Leave records a return and calls yield for each call that it ends, the innermost first. There
// are several if one function ends in a jump to another. While yield runs, e describes the call.
// Leave returns how many calls were left without a return. A return without an entry belongs to a
// call from before the recording, or to a function that shares code.
func (c *Calls) Leave(e *Event, yield func(e *Event)) (missed int) {
	list, missed := c.drop(e.TID, e.Slot)
	for n := len(list); n > 0 && list[n-1].slot == e.Slot; n-- {
		x := &list[n-1]
		e.site, e.Function, e.PC, e.Caller, e.Entry = x.site, x.site.function, x.pc, x.caller, x.entry
		yield(e)
		list = list[:n-1]
	}
	c.put(e.TID, list)
	return missed
}

// Read adds a text to the entry of an open call.
func (c *Calls) Read(e *Event) {
	list := c.threads[e.TID]
	for i := range list {
		if x := list[i].entry; x != nil && list[i].slot == e.Slot && e.unread == 0 {
			x.texts[e.which] = e.texts[0]
			x.unread &^= 1 << e.which
		}
	}
}

// Continues reports whether another function jumped to the function that is entered.
func (c *Calls) Continues(e *Event) bool {
	list := c.threads[e.TID]
	n := len(list)
	return n > 0 && list[n-1].slot == e.Slot && c.jumps(&list[n-1], e)
}

// Within reports whether a thread has an open call for which fits returns true.
func (c *Calls) Within(tid uint32, fits func(entry *Event) bool) bool {
	return slices.ContainsFunc(c.threads[tid], func(x open) bool { return x.entry != nil && fits(x.entry) })
}

// drop removes calls whose frames are gone: they have returned unseen, or were left in another
// way.
func (c *Calls) drop(tid uint32, slot uint64) (list []open, missed int) {
	list = c.threads[tid]
	for n := len(list); n > 0 && list[n-1].slot < slot; n-- {
		list = list[:n-1]
		missed++
	}
	if missed > 0 {
		c.put(tid, list)
	}
	return list, missed
}

func (c *Calls) put(tid uint32, list []open) {
	if len(list) == 0 {
		delete(c.threads, tid)
		return
	}
	c.threads[tid] = list
}

// Forget drops the calls of a thread that has ended.
func (c *Calls) Forget(tid uint32) { delete(c.threads, tid) }

// Clear drops all calls, because the process has executed another program.
func (c *Calls) Clear() { clear(c.threads) }
