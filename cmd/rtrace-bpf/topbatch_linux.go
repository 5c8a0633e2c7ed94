package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/topview"
)

// run shows the processes until the end. If top has started a command, it returns its exit status.
func (t *topFlags) run(ctx context.Context, s cli.Streams, env settings) (status int, err error) {
	recorded, stop := context.WithCancel(ctx)
	defer stop()
	screen := !t.batch && s.OutTerminal && s.InTerminal && env.get("TERM") != "dumb"
	messages := new(kept)
	s.Err = cli.Redirect(s.Err, func(w io.Writer) io.Writer {
		messages.to = w
		return messages
	})
	w, err := t.start(recorded, s, env, screen)
	if w != nil && w.command != nil {
		defer context.AfterFunc(ctx, w.command.terminate)()
	}
	if err == nil {
		defer w.Close()
		model := topview.New(w, topview.Options{By: topview.By(t.by), Order: topview.Order(t.order), Filter: t.filter, Plain: !env.showsUTF8()})
		if screen {
			messages.hold()
			err = t.interact(recorded, stop, s, w, model, env, messages.release)
		} else {
			err = t.printAll(stop, s, w, model)
		}
	}
	if w == nil || w.command == nil {
		return 0, err
	}
	status, left := w.command.wait(s, env)
	return status, errors.Join(err, left)
}

// attached waits until the probes are attached. It reports whether they are.
func (w *watching) attached() bool {
	select {
	case <-w.ready:
		return true
	case <-w.over:
		return false
	}
}

// interact shows the terminal interface, and ends the recording when the user quits. closed is
// called when the terminal is as it was before.
func (t *topFlags) interact(ctx context.Context, stop func(), s cli.Streams, w *watching, model *topview.Model, env settings, closed func()) error {
	if !w.attached() {
		closed()
		return w.err
	}
	width, err := t.show(ctx, s, w, model, env)
	closed()
	if w.command != nil {
		w.command.terminate()
	}
	stop()
	<-w.over
	if err == nil {
		err = t.last(s, w, model, width)
	}
	for _, path := range w.written {
		cli.Message(s.Err, slog.LevelInfo, name+" top", "wrote "+printable.Name(path))
	}
	if err != nil {
		return err
	}
	return w.err
}

// printAll prints tables, and ends the recording after the last one.
func (t *topFlags) printAll(stop func(), s cli.Streams, w *watching, model *topview.Model) error {
	if !w.attached() {
		return w.err
	}
	err := t.print(s, w, model)
	stop()
	<-w.over
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
