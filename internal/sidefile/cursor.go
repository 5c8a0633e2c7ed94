package sidefile

// cursor moves through the runs of a chunk. Positions must be requested in
// ascending order.
type cursor struct {
	tid, stack, size int    // runs used so far
	tidEnd, stackEnd uint64 // position after the current run
}

func (c *cursor) reset(k *chunk) { *c = cursor{tidEnd: k.from, stackEnd: k.from} }

// endOf returns the end of a run of n positions that begins at from.
func endOf(from, n, limit uint64) uint64 {
	if n > limit-from {
		return limit
	}
	return from + n
}

func (c *cursor) tidAt(k *chunk, pos uint64) (int32, bool) {
	for pos >= c.tidEnd {
		if c.tid == len(k.tids) {
			return 0, false
		}
		c.tidEnd = endOf(c.tidEnd, k.tids[c.tid].n, k.to)
		c.tid++
	}
	return k.tids[c.tid-1].tid, true
}

func (c *cursor) stackAt(k *chunk, pos uint64) *quality {
	for pos >= c.stackEnd {
		if c.stack == len(k.stacks) {
			return nil
		}
		c.stackEnd = endOf(c.stackEnd, k.stacks[c.stack].n, k.to)
		c.stack++
	}
	return &k.stacks[c.stack-1].q
}

func (c *cursor) sizeAt(k *chunk, pos uint64) (uint64, bool) {
	for c.size < len(k.sizes) && k.sizes[c.size].pos < pos {
		c.size++
	}
	if c.size < len(k.sizes) && k.sizes[c.size].pos == pos {
		return k.sizes[c.size].size, true
	}
	return 0, false
}
