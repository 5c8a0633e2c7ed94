package trace

import (
	"errors"
	"io"
)

// Reader is a source of records: the tracer, a decoder, a filter.
type Reader interface {
	// ReadRecord fills r with the next record. What r refers to is valid
	// until the next call. At the end of a whole trace it returns io.EOF. A
	// trace that was cut yields all its whole records and then a
	// *SyntaxError that wraps ErrTruncated.
	ReadRecord(r *Record) error
}

// Writer is a sink of records: an encoder, or what keeps records for one.
type Writer interface {
	// WriteRecord writes r and keeps no reference to it. It drops a kind that
	// the format has no place for, without an error; the format's page in
	// docs/formats lists these kinds.
	WriteRecord(r *Record) error
	// Flush writes everything buffered to the underlying writer.
	Flush() error
	// Close completes the output (trailer, index …) and flushes it. It does
	// not close the underlying writer.
	Close() error
}

// Copy writes every record of r to w, up to the end of the trace, and returns
// the first error that is not io.EOF. It neither flushes nor closes w.
func Copy(w Writer, r Reader) error {
	var rec Record
	for {
		if err := r.ReadRecord(&rec); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := w.WriteRecord(&rec); err != nil {
			return err
		}
	}
}

// Load reads a whole trace into memory. The caller owns the records. With an error it
// returns the records before the error.
func Load(r Reader) ([]*Record, error) {
	var (
		all []*Record
		rec Record
	)
	for {
		if err := r.ReadRecord(&rec); err != nil {
			if errors.Is(err, io.EOF) {
				return all, nil
			}
			return all, err
		}
		all = append(all, rec.Clone())
	}
}
