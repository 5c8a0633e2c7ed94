package sptext

import (
	"bytes"
	"math/bits"
	"strings"

	wire "rtrace-bpf/internal/wire/sptext"
	"rtrace-bpf/trace"
)

// registry parses a line that is neither a call nor a comment.
func (d *Reader) registry(line []byte, r *trace.Record) bool {
	p := scanner{line[1:]}
	switch line[0] {
	case ':':
		if d.mapping(p.s, &r.Mapping) {
			r.Kind = trace.KindMapping
			return true
		}
	case '@':
		return d.context(p, r)
	case '<':
		return d.resource(p, r)
	case '&':
		return d.attachment(p, r)
	}
	return false
}

// mapping reads [ ]PATH => 0xFROM-0xTO. FROM is the load base or the start of the
// executable mapping; the text does not distinguish them.
func (d *Reader) mapping(s []byte, m *trace.Mapping) bool {
	p := scanner{s}
	var path []byte
	if d.opts.Legacy {
		var ok bool
		if path, ok = p.word(); !ok {
			return false
		}
		p.spaces()
		if !p.text("=>") {
			return false
		}
	} else {
		i := bytes.LastIndex(s, []byte("=> 0x"))
		if i < 0 {
			return false
		}
		path = bytes.TrimSuffix(bytes.TrimPrefix(s[:i], []byte{' '}), []byte{' '})
		p.s = s[i+2:]
	}
	p.spaces()
	from, ok := p.address()
	if !ok || !p.byte('-') {
		return false
	}
	to, ok := p.address()
	if !ok {
		return false
	}
	*m = trace.Mapping{Start: from, End: to, Path: d.texts.unquote(path)}
	return true
}

// context reads ID : NAME.
func (d *Reader) context(p scanner, r *trace.Record) bool {
	id, ok := p.hex()
	if !ok {
		return false
	}
	p.spaces()
	if !p.byte(':') {
		return false
	}
	name := p.s
	if d.opts.Legacy {
		p.spaces()
		if len(p.s) == 0 {
			return false
		}
		// The original reads the context but stores nothing of it.
		r.Kind, r.Context = trace.KindContext, trace.Context{Name: "(null)"}
		return true
	}
	name = bytes.TrimPrefix(name, []byte{' '})
	r.Kind, r.Context = trace.KindContext, trace.Context{ID: uint32(id), Name: d.texts.unquote(name)}
	return true
}

// resource reads MASK> : TYPE (DESC)[ [FLAGS]]. It drops a type that is already
// declared.
func (d *Reader) resource(p scanner, r *trace.Record) bool {
	mask, ok := p.hex()
	if !ok || !p.byte('>') {
		return false
	}
	p.spaces()
	if !p.byte(':') {
		return false
	}
	p.spaces()
	typ, ok := p.until(' ')
	if !ok {
		return false
	}
	p.spaces()
	if !p.byte('(') {
		return false
	}
	desc, ok := p.until(')')
	if !ok && d.opts.Legacy {
		return false
	}
	res := trace.Resource{Type: d.texts.unquote(typ), Desc: d.texts.unquote(desc)}
	if m := uint32(mask); m != 0 {
		res.ID = uint32(bits.TrailingZeros32(m)) + 1
	}
	if p.byte(')') {
		if p.spaces(); p.byte('[') {
			flags, _ := p.until(']')
			res.RefCount = bytes.Contains(flags, []byte(wire.RefCount))
		}
	}
	if d.resources.has(res.Type) {
		r.Kind = trace.KindNone
		return true
	}
	d.resources.declared = append(d.resources.declared, res)
	r.Kind, r.Resource = trace.KindResource, res
	return true
}

// attachment reads NAME : PATH.
func (d *Reader) attachment(p scanner, r *trace.Record) bool {
	name, ok := p.word()
	if !ok {
		return false
	}
	p.spaces()
	if !p.byte(':') {
		return false
	}
	path, ok := p.word()
	if !ok {
		return false
	}
	r.Kind = trace.KindAttachment
	r.Attachment = trace.Attachment{Name: d.texts.unquote(name), Path: d.texts.unquote(path)}
	return true
}

// comment makes a record of a line that is nothing else. Comments in which rtrace's
// writer puts other records become those records.
func (d *Reader) comment(line []byte, r *trace.Record) bool {
	if d.opts.Legacy {
		if line[0] != '#' {
			end := "\n"
			if d.lines.bare {
				end = ""
			}
			d.warn(warnComment + string(line) + end)
		}
		if d.lines.cut && len(d.partial) < maxLine {
			d.partial = append(d.partial, line...)
			return false
		}
		r.Kind, r.Comment = trace.KindComment, string(d.partial)+string(line)
		d.partial = d.partial[:0]
		return true
	}
	s := string(line)
	switch {
	case strings.HasPrefix(s, wire.ModulePrefix):
		if d.module(scanner{line[len(wire.ModulePrefix):]}, r) {
			return true
		}
	case strings.HasPrefix(s, wire.LostPrefix):
		if d.lost(scanner{line[len(wire.LostPrefix):]}, r) {
			return true
		}
	case strings.HasPrefix(s, wire.UnmappedPrefix):
		if d.mapping(line[len(wire.UnmappedPrefix):], &r.Mapping) {
			r.Kind = trace.KindUnmapping
			return true
		}
	case s == wire.End && d.ends:
		r.Kind = trace.KindEnd
		return true
	case strings.HasPrefix(s, wire.ExecPrefix):
		r.Kind, r.Exec = trace.KindExec, trace.Exec{Name: d.texts.unquote(line[len(wire.ExecPrefix):])}
		return true
	}
	r.Kind, r.Comment = trace.KindComment, s
	return true
}

// flushPartial makes a record of a comment whose last piece is not a comment.
func (d *Reader) flushPartial() {
	if len(d.partial) > 0 {
		d.ready = append(d.ready, trace.Record{Kind: trace.KindComment, Comment: string(d.partial)})
		d.partial = d.partial[:0]
	}
}

// module reads [HEXID] NAME (MAJOR.MINOR).
func (d *Reader) module(p scanner, r *trace.Record) bool {
	if !p.byte('[') {
		return false
	}
	id, ok := p.hex()
	if !ok || !p.text("] ") {
		return false
	}
	i := bytes.LastIndex(p.s, []byte(" ("))
	if i < 0 {
		return false
	}
	name := p.s[:i]
	p.s = p.s[i+2:]
	major, negative, ok := p.decimal()
	if !ok || negative || !p.byte('.') {
		return false
	}
	minor, negative, ok := p.decimal()
	if !ok || negative || string(p.s) != ")" || id > 1<<32-1 || major > 1<<16-1 || minor > 1<<16-1 {
		return false
	}
	r.Kind = trace.KindTracerModule
	r.TracerModule = trace.TracerModule{ID: uint32(id), Major: uint16(major), Minor: uint16(minor), Name: d.texts.unquote(name)}
	return true
}

// lost reads COUNT events (REASON).
func (d *Reader) lost(p scanner, r *trace.Record) bool {
	n, negative, ok := p.decimal()
	if !ok || negative || !p.text(wire.LostEvents+" (") {
		return false
	}
	reason, ok := bytes.CutSuffix(p.s, []byte{')'})
	if !ok {
		return false
	}
	r.Kind, r.Lost = trace.KindLost, trace.Lost{Count: n, Reason: d.texts.unquote(reason)}
	return true
}
