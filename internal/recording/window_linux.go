package recording

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"rtrace-bpf/internal/recording/dotnet"
)

// window is a time in which probes are attached: a session, and a trace, for each process.
type window struct {
	recording *Recording
	ctx       context.Context    // of the program
	until     context.Context    // of the window
	close     context.CancelFunc // ends until
	stop      func()             // ends the recording
	running   sync.WaitGroup     // sessions
	first     []*session         // that the window has begun with
	ends      int                // of Recording.ends, those of former windows
	ended     chan struct{}      // closed when the files are complete
}

// open begins a window. It ends with its sessions, with until, or by end. After an error
// there is none. stop ends the recording.
func (r *Recording) open(ctx, until context.Context, stop func()) (*window, error) {
	r.windows++
	w := &window{recording: r, ctx: ctx, stop: stop, ends: len(r.ends), ended: make(chan struct{})}
	w.until, w.close = context.WithCancel(until)
	err := r.beginSessions(w)
	if err == nil && r.following != nil {
		w.running.Go(func() { r.descend(w) })
	}
	go func() {
		w.running.Wait()
		w.close()
		close(w.ended)
	}()
	if err != nil {
		return nil, errors.Join(err, w.end())
	}
	return w, nil
}

// trace begins a session, which runs until its process or the window ends. After an error
// there is none.
func (w *window) trace(x *session) (err error) {
	r := w.recording
	switch {
	case r.options.PerfMap:
		if x.chain.perfMap, err = dotnet.NewPerfMap(w.until, x.pid, r.options.Line); err != nil {
			x.chain.perfMap = nil
			r.options.Line.Print("process %d: no perf map: %v", x.pid, err)
		}
	case r.options.Watch == nil && r.options.Runtime == nil:
		x.chain.perfMap = dotnet.ReadPerfMap(x.pid, r.options.Line)
	}
	if err := x.attach(w.until, r.tracerOptions(x)); err != nil {
		x.root.Close()
		if x.chain.perfMap != nil {
			x.chain.perfMap.Discard()
		}
		return err
	}
	r.options.Report.Began(&Process{PID: x.pid, Name: x.name(), Path: x.path(), Child: x.child})
	r.busy.Add(1)
	if r.following != nil {
		r.following.add(x)
	}
	w.running.Go(func() { r.end(x, x.run(w.ctx, w.until), w.stop) })
	return nil
}

// end ends a window and returns when its files are complete. The error is that of its
// sessions.
func (w *window) end() error {
	w.close()
	<-w.ended
	r := w.recording
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, e := range r.ends[w.ends:] {
		errs = append(errs, e.err)
	}
	return errors.Join(errs...)
}

// all returns the sessions of the window: those that it has begun with, and those of
// processes that have come since and have not ended.
func (w *window) all() []*session {
	all := w.first
	if w.recording.following == nil {
		return all
	}
	for _, x := range w.recording.following.all() {
		if !slices.Contains(w.first, x) {
			all = append(slices.Clip(all), x)
		}
	}
	return all
}

// mark sets a mark in each trace.
func (w *window) mark(name string) error {
	set := 0
	for _, x := range w.all() {
		if x.probes.tracer.Mark(name) == nil {
			set++
		}
	}
	if set == 0 {
		return errors.New("the trace is ending, and takes no mark any more")
	}
	return nil
}

// paths returns the files of the window, separated by commas.
func (w *window) paths() string {
	var all []string
	for _, x := range w.all() {
		all = append(all, x.path())
	}
	return strings.Join(all, ", ")
}
