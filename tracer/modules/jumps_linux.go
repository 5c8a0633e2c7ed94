package modules

// past is a call that was recorded.
type past struct {
	symbol       string
	slot, caller uint64
}

// pasts holds the last calls of threads, except those whose place on the stack is gone.
type pasts map[uint32][]past

func (p pasts) forget(tid uint32) { delete(p, tid) }

// notJumped returns a condition that a call is not the end of another call of the module that has
// jumped there. Such a call has the same return address, at the same place, as if the program had
// made it. jumps reports which functions may do that.
func notJumped(jumps func(from, to string) bool) func(c *call) bool {
	return func(c *call) bool {
		if c.pasts[c.module] == nil {
			c.pasts[c.module] = pasts{}
		}
		all := c.pasts[c.module]
		this := past{c.entry.Function.Symbol, c.entry.Slot, c.entry.Caller}
		list := all[c.entry.TID]
		for n := len(list); n > 0 && list[n-1].slot < this.slot; n-- {
			list = list[:n-1]
		}
		if n := len(list); n > 0 && list[n-1].slot == this.slot {
			if last := list[n-1]; last.caller == this.caller && jumps(last.symbol, this.symbol) {
				return false
			}
			list = list[:n-1]
		}
		all[c.entry.TID] = append(list, this)
		return true
	}
}
