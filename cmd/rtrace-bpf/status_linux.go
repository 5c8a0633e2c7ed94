package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"rtrace-bpf/internal/printable"
	"rtrace-bpf/tracer"
)

// status is the line that a terminal shows while recording, and what is said
// meanwhile. Its methods may be called by several goroutines.
type status struct {
	w  io.Writer
	on bool

	mu    sync.Mutex
	shown bool
	each  map[int]figures // by process
	calls uint64
	at    time.Time
}

// figures are what the line adds up.
type figures struct {
	calls, lost, pauses uint64
	blocks, unknown     int
	bytes               uint64
}

// text is the line but for the rate.
func (f *figures) text() string {
	text := fmt.Sprintf("%d blocks live (%s), ", f.blocks, size(f.bytes))
	if f.unknown > 0 {
		text += fmt.Sprintf("%d unknown, ", f.unknown)
	}
	text += fmt.Sprintf("%d lost", f.lost)
	if f.pauses > 0 {
		text += fmt.Sprintf(", paused %s", times(f.pauses))
	}
	return text
}

// showEvery is the least time between two lines, each of which has the figures
// of all processes.
const showEvery = 900 * time.Millisecond

// begin starts the clock of the first line's rate.
func (s *status) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = time.Now()
}

// print prints a line of its own. Nothing in it can act on a terminal.
func (s *status) print(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	fmt.Fprintln(s.w, printable.Text(fmt.Sprintf(name+": "+format, args...)))
}

// write prints several lines, which nothing comes between.
func (s *status) write(lines func(io.Writer) error) error {
	var text bytes.Buffer
	err := lines(&text)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	fmt.Fprint(s.w, printable.Text(text.String()))
	return err
}

// show takes over the figures of a process and replaces the line.
func (s *status) show(pid int, stats *tracer.Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.on {
		return
	}
	if s.each == nil {
		s.each = map[int]figures{}
	}
	s.each[pid] = figures{
		calls: stats.Calls, lost: stats.LostEvents(), pauses: stats.Lost[tracer.LossPaused],
		blocks: stats.LiveBlocks, unknown: stats.UnknownBlocks, bytes: stats.LiveBytes,
	}
	now := time.Now()
	passed := now.Sub(s.at)
	if passed < showEvery {
		return
	}
	var all figures
	for _, f := range s.each {
		all.calls += f.calls
		all.lost += f.lost
		all.pauses += f.pauses
		all.unknown += f.unknown
		all.blocks += f.blocks
		all.bytes += f.bytes
	}
	rate := float64(all.calls-s.calls) / passed.Seconds()
	s.calls, s.at, s.shown = all.calls, now, true
	fmt.Fprintf(s.w, "\r\x1b[K%s events/s, %s", scaled(rate), all.text())
}

// say replaces the line by a text.
func (s *status) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on {
		s.shown = true
		fmt.Fprintf(s.w, "\r\x1b[K%s", printable.Name(text))
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
