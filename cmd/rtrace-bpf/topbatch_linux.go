package main

import (
	"context"
	"time"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/topview"
)

// run shows the processes until the end.
func (t *topFlags) run(ctx context.Context, s cli.Streams, env settings) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	messages, errOut := &kept{to: s.Err}, s.Err
	s.Err = messages
	w, err := t.start(ctx, s, env)
	if err != nil {
		return err
	}
	defer w.Close()
	select {
	case <-w.ready:
	case <-w.over:
		return w.err
	}
	model := topview.New(w, topview.Options{By: topview.By(t.by), Order: topview.Order(t.order), Filter: t.filter, Plain: !env.showsUTF8()})
	width := topview.TableWidth
	screen := !t.batch && s.OutTerminal && s.InTerminal && env.get("TERM") != "dumb"
	if !screen {
		err = t.print(s, w, model)
	} else {
		messages.hold()
		width, err = t.show(ctx, s, w, model, env)
		messages.release(errOut)
	}
	stop()
	<-w.over
	if err == nil && screen {
		err = t.last(s, w, model, width)
	}
	if err != nil {
		return err
	}
	return w.err
}

// last prints the last table, which is left on the terminal.
func (t *topFlags) last(s cli.Streams, w *watching, model *topview.Model, width int) error {
	if !model.Ended() {
		t.update(w, model, true)
	}
	return t.table(s, model, 1, width)
}

// print prints a table at each refresh, until the recording ends or there were enough.
func (t *topFlags) print(s cli.Streams, w *watching, model *topview.Model) error {
	tick := time.NewTicker(t.interval)
	defer tick.Stop()
	for n := 1; ; n++ {
		over := false
		select {
		case <-w.over:
			over = true
		case <-tick.C:
		}
		last := over || n == t.count
		t.update(w, model, last)
		if err := t.table(s, model, n, topview.TableWidth); err != nil || last {
			return err
		}
	}
}

// update takes the figures of this moment, and names the rows that are printed.
func (t *topFlags) update(w *watching, model *topview.Model, last bool) {
	model.Update(w.snapshot(), last)
	w.NameRows(model, t.rows)
}

// table prints one table, as text of a number of columns or as JSON.
func (t *topFlags) table(s cli.Streams, model *topview.Model, n, width int) error {
	if t.json {
		return model.WriteJSON(s.Out, t.rows)
	}
	out := printable.NewWriter(s.Out)
	if n > 1 {
		if _, err := out.Write([]byte("\n")); err != nil {
			return err
		}
	}
	return model.WriteTable(out, t.rows, width)
}
