package output

import (
	"errors"

	"rtrace-bpf/encoder"
	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/internal/sidefile"
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// Writer writes the trace and its side file.
type Writer struct {
	encoder trace.Writer
	side    *sidefile.Writer   // nil for none
	attach  []trace.Attachment // files that the trace names at its beginning

	// Syscalls returns the names of the system calls in a trace in SWAP; nil: it has none.
	Syscalls func() map[uint64]string
	// Functions returns those of its functions; nil: it has none.
	Functions func() map[uint64]string
	// Processors is the number of processors in its states of the machine, 0 if it has none.
	Processors int

	encoderFailed, sideFailed bool // the error was returned
}

var _ trace.Writer = (*Writer)(nil)

// WriteRecord implements trace.Writer.
func (w *Writer) WriteRecord(r *trace.Record) error {
	if err := w.encode(r); err != nil {
		return err
	}
	if w.side != nil {
		if err := w.side.WriteRecord(r); err != nil {
			w.sideFailed = true
			return err
		}
	}
	if r.Kind != trace.KindHeader {
		return nil
	}
	for _, a := range w.attach {
		if err := w.encode(&trace.Record{Kind: trace.KindAttachment, Time: r.Time, PID: r.PID, Attachment: a}); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) encode(r *trace.Record) error {
	err := w.encoder.WriteRecord(r)
	w.encoderFailed = w.encoderFailed || err != nil
	return err
}

// Flush flushes the trace. The side file is written later.
func (w *Writer) Flush() error { return w.encoder.Flush() }

// Close completes the files as far as possible. It returns errors that were not returned
// before.
func (w *Writer) Close() error {
	err := w.encoder.Close()
	if w.encoderFailed {
		err = nil
	}
	if w.side == nil {
		return err
	}
	err = errors.Join(err, w.describeSwap())
	if e := w.side.Close(); !w.sideFailed {
		err = errors.Join(err, e)
	}
	return err
}

// describeSwap writes what the side file of a trace in SWAP describes.
func (w *Writer) describeSwap() error {
	apis, start, ok := encoder.SwapSide(w.encoder)
	if !ok {
		return nil
	}
	about := &wire.Side{Version: encoder.SwapVersion, Start: start, APIs: apis}
	if w.Syscalls != nil {
		about.Syscalls = w.Syscalls()
	}
	if w.Functions != nil {
		about.Functions = w.Functions()
	}
	if w.Processors > 0 {
		about.CPUs, about.Devices = w.Processors, swap.SystemDevices()
	}
	err := w.side.Facts(wire.Format, about)
	w.sideFailed = w.sideFailed || err != nil
	return err
}
