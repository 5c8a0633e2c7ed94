package sptext

import (
	"bytes"

	"rtrace-bpf/trace"
)

// Warnings of the original parser.
const (
	warnFrame   = "WARNING: found a backtrace record without preceding function call record\n"
	warnArg     = "WARNING: found a function argument record without preceding function call record\n"
	warnComment = "WARNING: unrecognized record, assuming it's a comment: "
)

// parse parses a line. It returns true if r now holds a record. A line that only adds
// to the pending calls makes none yet. A line that ends a group of calls is repeated
// after they are delivered.
func (d *Reader) parse(line []byte, r *trace.Record) (bool, error) {
	if d.bare && !d.opts.Legacy {
		// It may lack its end, or an address its last digits.
		return false, d.syntaxError(d.lineAt, trace.ErrTruncated)
	}
	if len(line) == 0 {
		d.flushPartial()
		d.closeGroup()
		return false, nil
	}
	c := line[0]
	if c == '#' && len(line) > 1 && line[1] == ' ' {
		return false, nil
	}
	if c == '\t' && (d.frame(line) || d.arg(line)) {
		return false, nil
	}
	if c >= '0' && c <= '9' || isSpace(c) || c == '-' || c == '+' {
		var p pending
		if d.call(line, &p) {
			return false, d.addCall(&p)
		}
	}
	if d.closeGroup() {
		d.repeat()
		return false, nil
	}
	r.Time, r.PID, r.TID, r.CPU = 0, 0, 0, 0
	if d.registry(line, r) {
		d.flushPartial()
		return r.Kind != trace.KindNone, nil
	}
	return d.comment(line, r), nil
}

// addCall adds a call to the pending ones, if those have no frames yet.
func (d *Reader) addCall(p *pending) error {
	if len(d.frames) > 0 {
		d.repeat()
		d.closeGroup()
		return nil
	}
	if len(d.pending) >= d.opts.MaxGroup {
		return d.syntaxError(d.lineAt, trace.ErrLimit)
	}
	d.flushPartial()
	p.firstArg, p.endArg = len(d.args), len(d.args)
	d.pending = append(d.pending, *p)
	return nil
}

// frame reads TAB 0xADDRESS[ TEXT].
func (d *Reader) frame(line []byte) bool {
	p := scanner{line[1:]}
	p.spaces()
	addr, ok := p.address()
	if !ok {
		return false
	}
	if len(d.pending) == 0 {
		d.warn(warnFrame)
		return true
	}
	if len(d.frames) >= maxFrames {
		return true
	}
	d.frames = append(d.frames, addr)
	p.spaces()
	if len(p.s) > 0 {
		for len(d.names) < len(d.frames)-1 {
			d.names = append(d.names, "")
		}
		d.names = append(d.names, d.text(p.s))
	} else if len(d.names) > 0 {
		d.names = append(d.names, "")
	}
	return true
}

// arg reads TAB $NAME = VALUE, an argument of the last call.
func (d *Reader) arg(line []byte) bool {
	p := scanner{line[1:]}
	p.spaces()
	if !p.byte('$') {
		return false
	}
	name, ok := p.word()
	if !ok {
		return false
	}
	p.spaces()
	if !p.byte('=') {
		return false
	}
	var value []byte
	if d.opts.Legacy {
		if value, ok = p.word(); !ok {
			return false
		}
	} else {
		p.byte(' ')
		value = p.s
	}
	if len(d.pending) == 0 {
		d.warn(warnArg)
		return true
	}
	last := &d.pending[len(d.pending)-1]
	if last.endArg-last.firstArg < maxArgs {
		d.args = append(d.args, trace.Arg{Name: d.text(name), Value: d.text(value)})
		last.endArg = len(d.args)
	}
	return true
}

// call reads INDEX. [@CONTEXT ][[TIME] ]NAME[<TYPE>](SIZE) = 0xID, or (0xID) after the
// name for a free.
func (d *Reader) call(line []byte, c *pending) bool {
	p := scanner{line}
	index, negative, ok := p.decimal()
	if !ok || !p.byte('.') {
		return false
	}
	if d.opts.Legacy {
		q := scanner{line}
		n, _ := q.int32()
		index = uint64(int64(n))
	} else if negative {
		return false
	}
	c.seq = index
	// The text between the point and the first space is ignored. That space may precede
	// the number.
	if p.s, ok = afterSpace(line); !ok {
		return false
	}
	if q := (scanner{p.s}); q.byte('@') {
		if v, ok := q.hex(); ok {
			c.context = uint32(v)
			if p.s, ok = afterSpace(p.s); !ok {
				return false
			}
		}
	}
	if t, ok := d.time(p.s); ok {
		c.time = t
		if p.s, ok = afterSpace(p.s); !ok {
			return false
		}
	}
	open := bytes.LastIndexByte(p.s, '(')
	if open < 0 {
		return false
	}
	name, rest := p.s[:open], p.s[open:]
	typ, typed, ok := d.typeOf(p.s, open)
	if !ok {
		return false
	}
	if typed {
		angle := bytes.LastIndexByte(p.s, '<')
		after := p.s[angle:]
		after = after[bytes.IndexByte(after, '('):]
		if !d.sizeAndID(after, c) {
			return false
		}
		if d.opts.Legacy || d.knows(typ) {
			name, rest = p.s[:angle], after
		} else {
			typ = nil
		}
	}
	if !d.sizeAndID(rest, c) {
		return false
	}
	c.function = d.text(name)
	c.resource = d.resourceOf(typ)
	return true
}

// typeOf returns the resource type of a call whose last '(' is at open: the text
// between the last '<' and a '>' directly before the parenthesis. typed reports whether
// there is one; ok is false if the last '<' follows the parenthesis or the type is empty.
func (d *Reader) typeOf(s []byte, open int) (typ []byte, typed, ok bool) {
	if open == 0 || s[open-1] != '>' {
		return nil, false, true
	}
	angle := bytes.LastIndexByte(s, '<')
	if angle < 0 {
		return nil, false, true
	}
	if angle > open {
		return nil, false, false
	}
	p := scanner{s[angle+1:]}
	typ, ok = p.until('>')
	return typ, true, ok
}

// sizeAndID reads (SIZE) = 0xID or (0xID).
func (d *Reader) sizeAndID(s []byte, c *pending) bool {
	p := scanner{s[1:]}
	size, negative, ok := p.decimal()
	if ok && p.byte(')') {
		p.spaces()
		if p.byte('=') {
			p.spaces()
			if c.id, ok = p.address(); ok {
				c.op = trace.OpAlloc
				c.size = d.size(size, negative)
				return true
			}
		}
	}
	p = scanner{s[1:]}
	if c.id, ok = p.address(); ok {
		c.op = trace.OpFree
		return true
	}
	return false
}

// size returns the size of an allocation. The original writes 32 bits with a sign: a
// negative number is a size of 2 GiB and more.
func (d *Reader) size(v uint64, negative bool) uint64 {
	switch {
	case d.opts.Legacy:
		if negative {
			v = -min(v, 1<<63)
		} else {
			v = min(v, 1<<63-1)
		}
		return uint64(uint32(v))
	case negative && v <= 1<<31:
		return uint64(uint32(-v))
	case negative:
		return -v
	}
	return v
}

// time reads [H:M:S.FRACTION and the text up to a space. The fraction is one of a
// second; in legacy mode it is milliseconds, however many digits it has.
func (d *Reader) time(s []byte) (int64, bool) {
	p := scanner{s}
	if !p.byte('[') {
		return 0, false
	}
	var v [4]int32
	var digits int
	for i, sep := range [4]byte{':', ':', '.', 0} {
		before := len(p.s)
		var ok bool
		if v[i], ok = p.int32(); !ok {
			return 0, false
		}
		digits = before - len(p.s)
		if sep != 0 && !p.byte(sep) {
			return 0, false
		}
	}
	const ms = int64(1e6)
	if d.opts.Legacy {
		// The original computes with 32 bits and takes the result as unsigned.
		return int64(uint32(v[0]*3600000+v[1]*60000+v[2]*1000+v[3])) * ms, true
	}
	for _, n := range v {
		if n < 0 {
			return 0, false
		}
	}
	fraction := int64(v[3])
	for ; digits < 9; digits++ {
		fraction *= 10
	}
	if digits > 9 {
		fraction = 0
	}
	return (int64(v[0])*3600+int64(v[1])*60+int64(v[2]))*1000*ms + fraction, true
}

// afterSpace returns the bytes after the first space.
func afterSpace(s []byte) ([]byte, bool) {
	_, rest, ok := bytes.Cut(s, []byte{' '})
	return rest, ok
}

// resourceOf returns the id of a call's resource. A call without a type belongs to the
// first resource, because writers leave out the type as long as there is only one.
func (d *Reader) resourceOf(typ []byte) uint32 {
	if typ == nil {
		if len(d.resources) == 0 {
			return 0
		}
		return d.resources[0].ID
	}
	name := d.text(typ)
	for i := range d.resources {
		if d.resources[i].Type == name {
			return d.resources[i].ID
		}
	}
	return 0
}

// knows reports whether typ is a resource. In a trace without declarations it declares
// typ; otherwise an unknown type is the end of a function's name, as in f<int>.
func (d *Reader) knows(typ []byte) bool {
	name := d.text(typ)
	for i := range d.resources {
		if d.resources[i].Type == name {
			return true
		}
	}
	if len(d.resources) > 0 && !d.guessed || len(d.resources) >= 32 {
		return false
	}
	d.guessed = true
	res := trace.Resource{ID: uint32(len(d.resources)) + 1, Type: name}
	d.resources = append(d.resources, res)
	d.ready = append(d.ready, trace.Record{Kind: trace.KindResource, Resource: res})
	return true
}
