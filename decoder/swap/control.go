package swap

import (
	"encoding/binary"
	"fmt"
	"io"

	"rtrace-bpf/internal/window"
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// DumpControl is Dump for captured packets of the control channel.
func DumpControl(w io.Writer, r io.Reader, o Options) (damaged uint64, err error) {
	if err := o.check(); err != nil {
		return 0, err
	}
	in := window.New(r, window.Size)
	d := newDumper(w, &in, o)
	if err := d.file(fileControl); err != nil {
		return 0, err
	}
	for err == nil {
		err = d.packet(o.MaxMessage)
	}
	return d.damaged, d.finish(err)
}

// packet writes the line of one packet of the control channel.
func (d *dumper) packet(limit int) error {
	in := d.in
	if !in.Have(1) {
		return in.Err()
	}
	offset := in.Offset()
	total := wire.ControlHeaderSize
	if in.Have(total) {
		size := binary.LittleEndian.Uint32(in.Bytes()[4:])
		if size > uint32(limit) {
			return syntaxError(offset, fmt.Errorf("packet of %d bytes %w of %d", size, trace.ErrLimit, limit))
		}
		total += int(size)
	}
	if !in.Have(total) {
		return syntaxError(in.Offset(), trace.ErrTruncated)
	}
	raw := in.Bytes()[:total]
	id, data := binary.LittleEndian.Uint32(raw), raw[wire.ControlHeaderSize:]
	err := d.parser.parse(wire.LookupControl(id), data, false, &d.fields)
	if err = d.damage(offset, id, err); err != nil && d.strict {
		return err
	}
	if d.exact(data, false) {
		d.Start(offset, total, d.fields.Message.Name)
		d.known()
	} else {
		d.Start(offset, total, wordPacket)
		d.Key("id")
		d.Text = appendHex(d.Text, uint64(id))
		d.unknown(data, err)
	}
	in.Skip(total)
	return d.End()
}

// DumpUI is Dump for the file that a UI_HIERARCHY message names. It writes its header
// and the common properties of the first object as fields, and the rest in hexadecimal.
func DumpUI(w io.Writer, r io.Reader, o Options) (damaged uint64, err error) {
	if err := o.check(); err != nil {
		return 0, err
	}
	in := window.New(r, window.Size)
	d := newDumper(w, &in, o)
	if err := d.file(fileUI); err != nil {
		return 0, err
	}
	in.Have(window.Size)
	data := in.Bytes()
	err = d.parser.parse(&wire.UIFile, data, false, &d.fields)
	if err != nil || d.fields.Flawed {
		d.damaged++
		return d.damaged, d.finish(syntaxError(0, fmt.Errorf("beginning of the file: %w", malformed("it is no UI hierarchy"))))
	}
	tail := len(d.fields.Tail)
	d.fields.Tail = nil
	if d.exact(data[:len(data)-tail], false) {
		d.Start(0, len(data)-tail, d.fields.Message.Name)
		d.known()
		in.Skip(len(data) - tail)
		if err := d.End(); err != nil {
			return 0, err
		}
	}
	return 0, d.finish(io.EOF)
}
