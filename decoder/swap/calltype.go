package swap

// CallTypes counts the call types of probe messages. A call type shows whether the
// caller belongs to what was selected for instrumentation. There are two numberings,
// and only the whole stream shows which one it uses: the document has -1, 0 and 1; the
// kernel of 2016 has 0, 1 and 2 in that order, and 0xFF after an error.
type CallTypes struct {
	counts [4]uint64 // of 0, 1, 2 and -1
	errors uint64    // of 0xFF
	others uint64
}

// add counts a call type.
func (c *CallTypes) add(v uint32) {
	switch v {
	case 0, 1, 2:
		c.counts[v]++
	case 0xFFFFFFFF:
		c.counts[3]++
	case 0xFF:
		c.errors++
	default:
		c.others++
	}
}

// Kernel reports whether the numbers are those of the kernel of 2016. A stream that has
// only 1 counts as one of the document's.
func (c *CallTypes) Kernel() bool { return c.counts[2] > 0 || c.errors > 0 }

// Counts returns the number of calls from instrumented files (internal), from other
// files (external), from callers that are not instrumented (none), and with another
// number (unknown).
func (c *CallTypes) Counts() (internal, external, none, unknown uint64) {
	if c.Kernel() {
		return c.counts[2], c.counts[1], c.counts[0], c.counts[3] + c.errors + c.others
	}
	return c.counts[1], c.counts[0], c.counts[3], c.others
}
