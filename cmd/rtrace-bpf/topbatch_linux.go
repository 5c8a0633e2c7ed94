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
	model := topview.New(w, topview.Options{By: topview.By(t.by), Order: topview.Order(t.order), Filter: t.filter})
	err = t.print(s, w, model)
	stop()
	<-w.over
	if err != nil {
		return err
	}
	return w.err
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
		model.Update(w.snapshot(), last)
		for missing := model.Missing(t.rows); len(missing) > 0; missing = model.Missing(t.rows) {
			for _, site := range missing {
				w.name(site)
			}
			model.Refresh()
		}
		if err := t.table(s, model, n); err != nil || last {
			return err
		}
	}
}

// table prints one table, as text or as JSON.
func (t *topFlags) table(s cli.Streams, model *topview.Model, n int) error {
	if t.json {
		return model.WriteJSON(s.Out, t.rows)
	}
	out := printable.NewWriter(s.Out)
	if n > 1 {
		if _, err := out.Write([]byte("\n")); err != nil {
			return err
		}
	}
	return model.WriteTable(out, t.rows)
}
