package dataset

import "errors"

// Finish completes the rows of the trace and adds them to the dataset. complete reports
// that the trace was read to its end. With an error, nothing new is in the dataset.
func (w *Writer) Finish(complete bool) error {
	w.blocks.finish()
	state := w.engine.State()
	if w.estimates.Any() {
		w.windows()
	} else {
		w.sums(state)
	}
	w.naming.write(w.source.ID, w.namer, w.tables.stacks, w.tables.frames)
	w.trace(state, complete)
	if err := w.end(); err != nil {
		return errors.Join(err, w.files.discard())
	}
	return w.files.commit()
}

// Discard gives up the trace.
func (w *Writer) Discard() error {
	_ = w.end() // of rows that are not needed
	return w.files.discard()
}

// end ends all tables.
func (w *Writer) end() error {
	t := &w.tables
	return errors.Join(
		t.calls.finish(), w.blocks.out.finish(), t.sites.finish(), t.stacks.finish(), t.frames.finish(),
		t.resources.finish(), t.mappings.finish(), t.losses.finish(), t.records.finish(), t.windows.finish(), t.estimates.finish(), t.traces.finish(),
	)
}
