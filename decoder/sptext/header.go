package sptext

import (
	"bytes"
	"slices"
	"time"

	wire "rtrace-bpf/internal/wire/sptext"
	"rtrace-bpf/trace"
)

// first makes the Header record, and the Process record if the first line is a header.
// If it is not, the line is parsed again like any other, unless it shows that the input
// is not a trace. The original takes any first line for a header.
func (d *Reader) first(line []byte) {
	fields, known := d.headerFields(line)
	if !known && !d.opts.Legacy {
		if len(line) > 0 && bytes.IndexByte([]byte("#:@<&0123456789"), line[0]) < 0 {
			d.finish(d.syntaxError(0, trace.ErrMalformed))
			return
		}
		d.lines.repeat()
	}
	if known && d.lines.bare && !d.opts.Legacy {
		d.finish(d.syntaxError(0, trace.ErrTruncated))
		return
	}
	head := trace.Record{Kind: trace.KindHeader}
	head.Header = trace.Header{
		Format:  wire.Format,
		Version: fields[wire.KeyVersion],
		Arch:    fields[wire.KeyArch],
		Clock:   trace.ClockDay,
		Filter:  fields[wire.KeyFilter],
		Origin:  fields[wire.KeyOrigin],
	}
	d.ready = append(d.ready, head)
	if !known && !d.opts.Legacy {
		return
	}
	proc := trace.Record{Kind: trace.KindProcess}
	proc.Process = trace.Process{Name: fields[wire.KeyProcess], Depth: -1}
	proc.PID = number(fields[wire.KeyPID])
	if depth, ok := fields[wire.KeyDepth]; ok {
		proc.Process.Depth = int(number(depth))
	}
	d.timestamp = time.Unix(0, 0)
	if t, ok := d.parseTime(fields[wire.KeyTimestamp]); ok {
		d.timestamp = t
		if t.Year() >= 1970 && t.Year() < 2262 { // the range that nanoseconds can hold
			proc.Process.WallTime = t.UnixNano()
		}
	}
	if proc.PID != 0 || proc.Process != (trace.Process{Depth: -1}) || d.opts.Legacy {
		d.ready = append(d.ready, proc)
	}
}

// announced reads the line after the header line if it announces an End.
func (d *Reader) announced() {
	if d.opts.Legacy || d.lines.again || d.err != nil {
		return // the first line is not a header
	}
	line, err := d.lines.next()
	if err != nil {
		return // parse the line like any other
	}
	if d.lines.bare || string(line) != wire.Ends {
		d.lines.repeat()
		return
	}
	d.ends, d.ready[0].Header.Ends = true, true
}

// headerFields reads the pairs of a header line. A value ends at the next comma. known
// reports whether a pair has a known key.
func (d *Reader) headerFields(line []byte) (fields map[string]string, known bool) {
	fields = make(map[string]string, len(wire.HeaderKeys))
	for len(line) > 0 {
		key, rest, ok := bytes.Cut(line, []byte{'='})
		if !ok || len(key) == 0 {
			break
		}
		value, next, more := bytes.Cut(rest, []byte{','})
		if !d.opts.Legacy && string(key) == wire.KeyProcess {
			value, next, more = cutValue(rest)
		}
		if d.opts.Legacy {
			if !more && !d.lines.bare {
				// The original includes the line feed.
				value = append(slices.Clone(value), '\n')
			}
			if len(value) == 0 {
				break // the original stops here, too
			}
		}
		for _, k := range wire.HeaderKeys {
			if string(key) == k {
				fields[k] = d.texts.unquote(value)
				known = true
			}
		}
		if !more {
			break
		}
		line = bytes.TrimLeft(next, " ")
	}
	return fields, known
}

// cutValue is bytes.Cut at the first comma that is followed by a known key or nothing,
// since other tools do not quote the commas of a command line. If there is no such
// comma, it cuts at the first one.
func cutValue(rest []byte) (value, next []byte, more bool) {
	for at := 0; ; {
		i := bytes.IndexByte(rest[at:], ',')
		if i < 0 {
			return bytes.Cut(rest, []byte{','})
		}
		at += i + 1
		next := bytes.TrimLeft(rest[at:], " ")
		key, _, ok := bytes.Cut(next, []byte{'='})
		if len(next) == 0 || ok && slices.Contains(wire.HeaderKeys[:], string(key)) {
			return rest[:at-1], rest[at:], true
		}
	}
}

// number reads a number. It returns 0 if there is none.
func number(s string) int32 {
	p := scanner{[]byte(s)}
	n, _ := p.int32()
	return n
}

// parseTime reads Y.M.D h:m:s, and D.M.Y h:m:s as functracer writes it. The original
// takes both for the first form. Days and hours may be out of range.
func (d *Reader) parseTime(s string) (time.Time, bool) {
	p := scanner{[]byte(s)}
	var v [6]int
	for i, sep := range [6]string{".", ".", " ", ":", ":", ""} {
		n, ok := p.int32()
		if !ok {
			return time.Time{}, false
		}
		v[i] = int(n)
		if sep == " " {
			p.spaces()
		} else if !p.text(sep) {
			return time.Time{}, false
		}
	}
	if !d.opts.Legacy && v[2] > 31 && v[0] <= 31 {
		v[0], v[2] = v[2], v[0]
	}
	return time.Date(v[0], time.Month(v[1]), v[2], v[3], v[4], v[5], 0, d.opts.Location), true
}
