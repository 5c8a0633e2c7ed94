package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"rtrace-bpf/tracer"
)

// status is the line that a terminal shows while recording, and what is said
// meanwhile. Its methods may be called by several goroutines.
type status struct {
	w  io.Writer
	on bool

	mu    sync.Mutex
	shown bool
	calls uint64
	at    time.Time
}

// begin starts the clock of the first line's rate.
func (s *status) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = time.Now()
}

// print prints a line of its own.
func (s *status) print(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	fmt.Fprintf(s.w, name+": "+format+"\n", args...)
}

// show replaces the line.
func (s *status) show(stats *tracer.Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.on {
		return
	}
	now := time.Now()
	rate := float64(stats.Calls-s.calls) / now.Sub(s.at).Seconds()
	s.calls, s.at, s.shown = stats.Calls, now, true
	fmt.Fprintf(s.w, "\r\x1b[K%s events/s, %d blocks live (%s), %d lost",
		scaled(rate), stats.LiveBlocks, size(stats.LiveBytes), stats.LostEvents())
}

// say replaces the line by a text.
func (s *status) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on {
		s.shown = true
		fmt.Fprintf(s.w, "\r\x1b[K%s", text)
	}
}

// clear removes the line, so that other text can be printed.
func (s *status) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
}

func (s *status) erase() {
	if s.shown {
		fmt.Fprint(s.w, "\r\x1b[K")
		s.shown = false
	}
}

// scaled prints a count with three digits or so.
func scaled(n float64) string {
	for _, u := range [...]string{"", "k", "M"} {
		if n < 1000 {
			if u == "" {
				return fmt.Sprintf("%.0f", n)
			}
			return fmt.Sprintf("%.1f%s", n, u)
		}
		n /= 1000
	}
	return fmt.Sprintf("%.1fG", n)
}

// size prints a number of bytes in the largest unit that fits.
func size(n uint64) string {
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	f, u := float64(n), 0
	for f >= 1024 && u < len(units)-1 {
		f /= 1024
		u++
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[u])
}
