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
	if d.lines.bare && !d.opts.Legacy {
		// It may lack its end, or an address its last digits.
		return false, d.syntaxError(d.lines.lineAt, trace.ErrTruncated)
	}
	if len(line) == 0 {
		d.flushPartial()
		d.group.close(d.opts.Legacy)
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
	if d.group.close(d.opts.Legacy) {
		d.lines.repeat()
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
	if len(d.group.frames) > 0 {
		d.lines.repeat()
		d.group.close(d.opts.Legacy)
		return nil
	}
	if len(d.group.pending) >= d.opts.MaxGroup {
		return d.syntaxError(d.lines.lineAt, trace.ErrLimit)
	}
	d.flushPartial()
	d.group.add(p)
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
	if len(d.group.pending) == 0 {
		d.warn(warnFrame)
		return true
	}
	p.spaces()
	d.group.addFrame(addr, p.s, &d.texts)
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
	if len(d.group.pending) == 0 {
		d.warn(warnArg)
		return true
	}
	d.group.addArg(name, value, &d.texts)
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
	c.function = d.texts.text(name)
	c.resource = d.resources.of(typ, &d.texts)
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

// knows reports whether typ is a resource. In a trace without declarations it declares
// typ; otherwise an unknown type is the end of a function's name, as in f<int>.
func (d *Reader) knows(typ []byte) bool {
	name := d.texts.text(typ)
	if d.resources.has(name) {
		return true
	}
	res, ok := d.resources.guess(name)
	if ok {
		d.ready = append(d.ready, trace.Record{Kind: trace.KindResource, Resource: res})
	}
	return ok
}

// warn reports a warning of the original parser.
func (d *Reader) warn(text string) {
	if d.opts.Warn != nil && d.opts.Legacy {
		d.opts.Warn(text)
	}
}
