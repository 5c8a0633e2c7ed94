package main

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"rtrace-bpf/encoder"
	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/internal/spool"
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// sideAttachment is what traces call their side file.
const sideAttachment = "side"

// files are what a recording leaves: the trace and its side file.
type files struct {
	encoder trace.Writer
	side    *sidefile.Writer // nil for none
	// attach are the files that the trace names.
	attach []trace.Attachment
	// syscalls returns the names of the system calls in the trace; nil: it has none.
	syscalls func() map[uint64]string
	// functions returns those of functions that the user names; nil: it has none.
	functions func() map[uint64]string
	// processors is how many elements the lists of SYSTEM have that are about them, 0
	// if there is none.
	processors int

	encoderFailed, sideFailed bool // which was told
}

var _ trace.Writer = (*files)(nil)

// WriteRecord implements trace.Writer.
func (f *files) WriteRecord(r *trace.Record) error {
	if err := f.encode(r); err != nil {
		return err
	}
	if f.side != nil {
		if err := f.side.WriteRecord(r); err != nil {
			f.sideFailed = true
			return err
		}
	}
	if r.Kind != trace.KindHeader {
		return nil
	}
	for _, a := range f.attach {
		if err := f.encode(&trace.Record{Kind: trace.KindAttachment, Time: r.Time, PID: r.PID, Attachment: a}); err != nil {
			return err
		}
	}
	return nil
}

func (f *files) encode(r *trace.Record) error {
	err := f.encoder.WriteRecord(r)
	f.encoderFailed = f.encoderFailed || err != nil
	return err
}

// Flush passes the trace on. The side file is for later.
func (f *files) Flush() error { return f.encoder.Flush() }

// Close completes the files as far as they can be. It returns errors that were
// not told before.
func (f *files) Close() error {
	err := f.encoder.Close()
	if f.encoderFailed {
		err = nil
	}
	if f.side != nil {
		if apis, start, ok := encoder.SwapSide(f.encoder); ok {
			about := &wire.Side{Version: encoder.SwapVersion, Start: start, APIs: apis}
			if f.syscalls != nil {
				about.Syscalls = f.syscalls()
			}
			if f.functions != nil {
				about.Functions = f.functions()
			}
			if f.processors > 0 {
				about.CPUs, about.Devices = f.processors, swap.SystemDevices()
			}
			e := f.side.Facts(wire.Format, about)
			f.sideFailed = f.sideFailed || e != nil
			err = errors.Join(err, e)
		}
		if e := f.side.Close(); !f.sideFailed {
			err = errors.Join(err, e)
		}
	}
	return err
}

// roomy writes to a file on the disk of a spool: when the disk is full, records
// at the end of the spool make room for those at its start.
type roomy struct {
	out   io.Writer
	spool *spool.File
}

// moreRoom is how much is made at least: what is in memory needs room, too.
const moreRoom = 1 << 20

func (r *roomy) Write(p []byte) (int, error) {
	for {
		n, err := r.out.Write(p)
		full := errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
		if n > 0 || !full || !r.spool.Yield(moreRoom+r.spool.Size()/64) {
			return n, err
		}
	}
}

var _ io.Writer = (*roomy)(nil)
