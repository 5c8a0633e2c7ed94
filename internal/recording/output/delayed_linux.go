package output

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/recording/status"
	"rtrace-bpf/internal/spool"
	"rtrace-bpf/trace"
)

// Delayed keeps records until the end of the recording, and then passes them to another
// writer, with the names of their callers: looking up names during the recording would
// fill the tracer's buffers.
type Delayed struct {
	File *spool.File
	To   trace.Writer
	// Names returns a reader of the same records with names.
	Names func(trace.Reader) trace.Reader
	Path  string // of the trace, for messages
	Line  *status.Line
	// Hurry is closed when names are not to be waited for; nil if there are none.
	Hurry <-chan struct{}
	Turn  sync.Locker // held while writing

	records uint64
	unnamed uint64    // records without names
	failed  error     // of WriteRecord
	shown   time.Time // when progress was shown
}

var _ trace.Writer = (*Delayed)(nil)

// WriteRecord implements trace.Writer.
func (w *Delayed) WriteRecord(r *trace.Record) error {
	w.records++
	w.failed = w.File.WriteRecord(r)
	return w.failed
}

// Flush does nothing: the file is lost with the process anyway.
func (w *Delayed) Flush() error { return nil }

// Close writes the records, also after an error those that were kept. It returns errors
// that were not returned before.
func (w *Delayed) Close() error {
	w.Turn.Lock()
	defer w.Turn.Unlock()
	from, err := w.File.Reader()
	if err == nil {
		err = w.write(from)
	}
	if err != nil && err == w.failed {
		err = nil
	}
	return errors.Join(err, w.To.Close(), w.File.Close())
}

// checkEvery is the number of records after which the clock is read.
const checkEvery = 1024

func (w *Delayed) write(from trace.Reader) error {
	w.shown = time.Now()
	source := w.Names(from)
	var rec trace.Record
	for n := uint64(0); ; n++ {
		if n%checkEvery == 0 {
			w.progress(n)
		}
		// Each name may take a while: the first one in a unit reads the debugging
		// information of the whole unit.
		select {
		case <-w.Hurry:
			if source != from {
				w.unnamed = w.records - n
			}
			source = from
		default:
		}
		err := source.ReadRecord(&rec)
		if err == nil {
			err = w.To.WriteRecord(&rec)
		}
		if err != nil {
			w.Line.Clear()
			return w.explain(err, n)
		}
	}
}

// explain returns what the end of reading or writing means, after n records.
func (w *Delayed) explain(err error, n uint64) error {
	switch {
	case err == io.EOF && w.unnamed > 0:
		return fmt.Errorf("interrupted while writing %s: the last %d of %d records are without names", w.Path, w.unnamed, w.records)
	case err == io.EOF:
		return nil
	case errors.Is(err, spool.ErrYielded):
		return fmt.Errorf("the disk is full: %s has the first %d of %d records", w.Path, n, w.records)
	}
	return err
}

// progress shows once a second how many records are written.
func (w *Delayed) progress(done uint64) {
	if now := time.Now(); now.Sub(w.shown) >= time.Second {
		w.shown = now
		text := fmt.Sprintf("writing %s: %d %% of %s records", w.Path, min(100*done/w.records, 100), status.Count(float64(w.records)))
		if w.Hurry != nil {
			text += "; Ctrl-C leaves out the names of the rest"
		}
		w.Line.Say(text)
	}
}

// yielding writes to a file on the disk of a temporary file. When the disk is full, records
// at the end of the temporary file are given up to make room for those at its beginning.
type yielding struct {
	out   io.Writer
	spool *spool.File
}

var _ io.Writer = (*yielding)(nil)

// leastYield is how many bytes of room are made at least: data in memory needs room, too.
const leastYield = 1 << 20

// Write implements io.Writer.
func (y *yielding) Write(p []byte) (int, error) {
	for {
		n, err := y.out.Write(p)
		full := errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
		if n > 0 || !full || !y.spool.Yield(leastYield+y.spool.Size()/64) {
			return n, err
		}
	}
}
