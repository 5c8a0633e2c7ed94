package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// window is a stretch of time in which the probes are in: a session, and so a trace,
// for each process.
type window struct {
	recording *recording
	sessions  []*session
	first     int // of recording.ends that is this window's
	stop      func()
	ended     chan struct{} // closed when the files are complete
}

// open begins a window. It ends with its sessions, with recording, or by close. After
// an error there is none.
func (r *recording) open(ctx, recording context.Context, stop func()) (*window, error) {
	r.windows++
	during, end := context.WithCancel(recording)
	w := &window{recording: r, first: len(r.ends), stop: end, ended: make(chan struct{})}
	var running sync.WaitGroup
	var err error
	w.sessions, err = r.start(ctx, during, stop, &running)
	if err == nil && r.following != nil {
		running.Go(func() { r.descend(ctx, during, stop, &running) })
	}
	go func() {
		running.Wait()
		end()
		close(w.ended)
	}()
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// close ends a window and returns when its files are complete. The error is what went
// wrong in its sessions.
func (w *window) close() error {
	w.stop()
	<-w.ended
	r := w.recording
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, e := range r.ends[w.first:] {
		errs = append(errs, e.err)
	}
	return errors.Join(errs...)
}

// all returns the sessions of the window: those that it has begun with, and those of
// the processes that have come since and have not ended.
func (w *window) all() []*session {
	all := w.sessions
	if w.recording.following == nil {
		return all
	}
	for _, x := range w.recording.following.all() {
		if !slices.Contains(w.sessions, x) {
			all = append(slices.Clip(all), x)
		}
	}
	return all
}

// mark puts a mark into each trace.
func (w *window) mark(name string) (said string, err error) {
	set := 0
	for _, x := range w.all() {
		if x.tracer.Mark(name) == nil {
			set++
		}
	}
	if set == 0 {
		return "", errors.New("the trace is ending, it takes no mark any more")
	}
	return fmt.Sprintf("mark %q is set in %s", name, w.paths()), nil
}

// paths names the files of the window.
func (w *window) paths() string {
	var all []string
	for _, x := range w.all() {
		all = append(all, x.out.Path())
	}
	return strings.Join(all, ", ")
}
