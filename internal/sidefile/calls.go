package sidefile

import (
	"strconv"

	"rtrace-bpf/internal/jsontext"
	"rtrace-bpf/trace"
)

// calls collects what the line of a chunk contains about its calls.
type calls struct {
	from, pos uint64 // the chunk begins at from; pos is the next position
	tids      runs
	stacks    runs
	sizes     []byte // "POSITION,SIZE," …
	tid       int32
	stack     quality
	text      []byte // of a quality
}

// size returns the length of the lists in bytes, without the current runs.
func (c *calls) size() int { return len(c.tids.text) + len(c.stacks.text) + len(c.sizes) }

// add adds a call that takes n positions.
func (c *calls) add(r *trace.Record, n uint64) {
	if r.TID != c.tid {
		c.endTIDs()
		c.tid = r.TID
	}
	c.tids.n += n
	if q := qualityOf(&r.Call.Stack); q != c.stack && (q.end != trace.StackAbsent || c.stack.bare) {
		c.endStacks()
		c.stack = q
	}
	c.stacks.n += n
	c.pos += n
	if r.Call.Size >= bigSize {
		// The allocation is the last of the call's positions.
		c.sizes = strconv.AppendUint(c.sizes, c.pos-1, 10)
		c.sizes = append(c.sizes, ',')
		c.sizes = strconv.AppendUint(c.sizes, r.Call.Size, 10)
		c.sizes = append(c.sizes, ',')
	}
}

// runs is a list "VALUE,COUNT,VALUE,COUNT," and the count of the current run.
type runs struct {
	text []byte
	n    uint64
}

func (r *runs) end() {
	r.text = append(r.text, ',')
	r.text = strconv.AppendUint(r.text, r.n, 10)
	r.text = append(r.text, ',')
	r.n = 0
}

func (c *calls) endTIDs() {
	if c.tids.n > 0 {
		c.tids.text = strconv.AppendInt(c.tids.text, int64(c.tid), 10)
		c.tids.end()
	}
}

func (c *calls) endStacks() {
	if c.stacks.n > 0 {
		c.text = c.stack.appendText(c.text[:0])
		c.stacks.text = jsontext.AppendString(c.stacks.text, string(c.text))
		c.stacks.end()
	}
}

// appendLine appends the line of the chunk, if it has calls, and begins the next chunk.
func (c *calls) appendLine(out []byte) []byte {
	c.endTIDs()
	c.endStacks()
	if c.pos <= c.from {
		return out
	}
	out = append(out, `{"from":`...)
	out = strconv.AppendUint(out, c.from, 10)
	out = jsontext.AppendUint(out, "to", c.pos)
	out = appendList(out, "tid", &c.tids.text)
	out = appendList(out, "stack", &c.stacks.text)
	out = appendList(out, "size", &c.sizes)
	c.from = c.pos
	return append(out, "}\n"...)
}

// appendList appends and clears a list that ends with a comma.
func appendList(out []byte, key string, text *[]byte) []byte {
	if n := len(*text); n > 0 {
		out = jsontext.AppendKey(out, key)
		out = append(out, '[')
		out = append(out, (*text)[:n-1]...)
		out = append(out, ']')
		*text = (*text)[:0]
	}
	return out
}
