package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"rtrace-bpf/internal/spool"
	"rtrace-bpf/trace"
)

// spooled keeps records until the end of the recording, and gives them then to
// an encoder, with the names of their callers: looking those up while the
// process runs would take time that the rings have not.
type spooled struct {
	file   *spool.File
	to     trace.Writer
	names  func(trace.Reader) trace.Reader // adds the names
	path   string                          // of the output, for messages
	status *status
	hurry  <-chan struct{} // closed when names are not to be waited for; nil if there are none
	turn   sync.Locker     // held while encoding

	records uint64
	unnamed uint64    // records that were not waited for
	failed  error     // of WriteRecord
	said    time.Time // when the status was last shown
}

var _ trace.Writer = (*spooled)(nil)

// WriteRecord implements trace.Writer.
func (w *spooled) WriteRecord(r *trace.Record) error {
	w.records++
	w.failed = w.file.WriteRecord(r)
	return w.failed
}

// Flush does nothing: what is in the file is lost with the process anyway.
func (w *spooled) Flush() error { return nil }

// Close encodes the records: also after an error those that were kept. It
// returns errors that were not told before.
func (w *spooled) Close() error {
	w.turn.Lock()
	defer w.turn.Unlock()
	from, err := w.file.Reader()
	if err == nil {
		err = w.encode(from)
	}
	if err != nil && err == w.failed {
		err = nil
	}
	return errors.Join(err, w.to.Close(), w.file.Close())
}

// checkEvery is after how many records the clock is looked at.
const checkEvery = 1024

func (w *spooled) encode(from trace.Reader) error {
	w.said = time.Now()
	source := w.names(from)
	var rec trace.Record
	for n := uint64(0); ; n++ {
		if n%checkEvery == 0 {
			w.progress(n)
		}
		// Each name may take a while: the debugging information of a whole
		// unit is read for the first one in it.
		select {
		case <-w.hurry:
			if source != from {
				w.unnamed = w.records - n
			}
			source = from
		default:
		}
		err := source.ReadRecord(&rec)
		if err == nil {
			err = w.to.WriteRecord(&rec)
		}
		if err != nil {
			w.status.clear()
			return w.explain(err, n)
		}
	}
}

// explain says what the end of the encoding means, behind n records.
func (w *spooled) explain(err error, n uint64) error {
	switch {
	case err == io.EOF && w.unnamed > 0:
		return fmt.Errorf("interrupted while writing %s: the last %d of %d records are without names", w.path, w.unnamed, w.records)
	case err == io.EOF:
		return nil
	case errors.Is(err, spool.ErrYielded):
		return fmt.Errorf("the disk is full: %s has the first %d of %d records", w.path, n, w.records)
	}
	return err
}

// progress says once a second how far it is.
func (w *spooled) progress(done uint64) {
	if now := time.Now(); now.Sub(w.said) >= time.Second {
		w.said = now
		text := fmt.Sprintf("writing %s: %d %% of %s records", w.path, min(100*done/w.records, 100), scaled(float64(w.records)))
		if w.hurry != nil {
			text += "; Ctrl-C leaves out the names of the rest"
		}
		w.status.say(text)
	}
}
