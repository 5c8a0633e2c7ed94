package sptext

import "rtrace-bpf/trace"

// group is calls that share a stack, which follows the last of them.
type group struct {
	pending []pending   // the calls
	given   int         // number of pending calls that were delivered
	args    []trace.Arg // of the pending calls
	frames  []uint64
	names   []string // as long as frames, or empty
	stack   trace.Stack
	closed  bool // the stack is complete
}

// pending is a call that waits for its stack.
type pending struct {
	seq, id, size uint64
	time          int64
	op            trace.Op
	context       uint32
	resource      uint32
	function      string
	firstArg      int // arguments are args[firstArg:endArg]
	endArg        int
}

// add adds a call.
func (g *group) add(p *pending) {
	p.firstArg, p.endArg = len(g.args), len(g.args)
	g.pending = append(g.pending, *p)
}

// addFrame adds a frame to the stack. The text may be empty.
func (g *group) addFrame(addr uint64, text []byte, t *texts) {
	if len(g.frames) >= maxFrames {
		return
	}
	g.frames = append(g.frames, addr)
	if len(text) > 0 {
		for len(g.names) < len(g.frames)-1 {
			g.names = append(g.names, "")
		}
		g.names = append(g.names, t.text(text))
	} else if len(g.names) > 0 {
		g.names = append(g.names, "")
	}
}

// addArg adds an argument of the last call.
func (g *group) addArg(name, value []byte, t *texts) {
	last := &g.pending[len(g.pending)-1]
	if last.endArg-last.firstArg < maxArgs {
		g.args = append(g.args, trace.Arg{Name: t.text(name), Value: t.text(value)})
		last.endArg = len(g.args)
	}
}

// give makes a record of the next pending call.
func (g *group) give(r *trace.Record) {
	p := &g.pending[g.given]
	g.given++
	r.Kind = trace.KindCall
	r.Time = p.time
	r.PID, r.TID, r.CPU = 0, 0, 0
	c := &r.Call
	c.Seq, c.Op, c.Function, c.Resource = p.seq, p.op, p.function, p.resource
	c.ID, c.OldID, c.Size, c.EntryTime, c.Context = p.id, 0, p.size, 0, p.context
	c.Index, c.Caller, c.Thread = 0, trace.Caller{}, 0
	c.Stack = g.stack
	c.Args = g.args[p.firstArg:p.endArg:p.endArg]
}

// close ends the stack of the calls. It returns false if there are none.
func (g *group) close(legacy bool) bool {
	if len(g.pending) == 0 {
		return false
	}
	g.stack = trace.Stack{Frames: g.frames, Names: g.names, End: trace.StackUnknown}
	if len(g.frames) == 0 && !legacy {
		g.stack.End = trace.StackAbsent
	}
	g.given = 0
	g.closed = true
	return true
}

// reset begins another group.
func (g *group) reset() {
	g.closed = false
	g.given = 0
	clear(g.pending) // release the strings
	g.pending = g.pending[:0]
	clear(g.args)
	g.args = g.args[:0]
	g.frames = g.frames[:0]
	clear(g.names)
	g.names = g.names[:0]
}
