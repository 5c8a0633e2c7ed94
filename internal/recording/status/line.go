package status

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/printable"
)

// Options are where a Line prints and what.
type Options struct {
	Out      io.Writer
	Program  string // the beginning of each message
	Progress bool   // Out is a terminal that shows progress
	Quiet    bool   // print errors and warnings only
	Verbose  int    // 0: no details; 1: what is done; 2: also where probes are
}

// Line prints messages and the line of progress. Its methods may be called by several
// goroutines.
type Line struct {
	Options

	mu    sync.Mutex
	shown bool
	each  map[int]Figures // by process
	calls uint64
	at    time.Time
}

// New returns a Line that has printed nothing.
func New(o Options) *Line { return &Line{Options: o} }

// Figures are what the line of progress adds up over the processes.
type Figures struct {
	Calls, Lost, Pauses uint64
	Blocks, Unknown     int // live blocks, and those whose frees a pause may have missed
	Bytes               uint64
}

// text is the line except for the rate.
func (f *Figures) text() string {
	text := fmt.Sprintf("%d blocks live (%s), ", f.Blocks, Bytes(f.Bytes))
	if f.Unknown > 0 {
		text += fmt.Sprintf("%d unknown, ", f.Unknown)
	}
	text += fmt.Sprintf("%d lost", f.Lost)
	if f.Pauses > 0 {
		text += fmt.Sprintf(", paused %s", Times(f.Pauses))
	}
	return text
}

// showEvery is the least time between two lines, each of which has the figures of all
// processes.
const showEvery = 900 * time.Millisecond

// Begin starts the clock of the first line's rate.
func (l *Line) Begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = time.Now()
}

// Print prints a warning. Nothing in it can act on a terminal.
func (l *Line) Print(format string, args ...any) { l.message(slog.LevelWarn, format, args) }

// Fail prints an error. Nothing in it can act on a terminal.
func (l *Line) Fail(format string, args ...any) { l.message(slog.LevelError, format, args) }

func (l *Line) message(level slog.Level, format string, args []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	cli.Message(l.Out, level, l.Program, fmt.Sprintf(format, args...))
}

// Note prints a message unless Quiet is set.
func (l *Line) Note(format string, args ...any) {
	if !l.Quiet {
		l.message(slog.LevelInfo, format, args)
	}
}

// Detail prints a message if Verbose is set.
func (l *Line) Detail(format string, args ...any) {
	if l.Verbose > 0 {
		l.message(slog.LevelDebug, format, args)
	}
}

// Write prints several lines, which no other message separates. The first one begins with
// the program. A [cli.Log] gets one record, with all lines as its text. It returns the error
// of lines.
func (l *Line) Write(lines func(io.Writer) error) error {
	var text bytes.Buffer
	err := lines(&text)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	if log, ok := l.Out.(*cli.Log); ok {
		whole := strings.TrimPrefix(text.String(), l.Program+": ")
		first, _, _ := strings.Cut(whole, "\n")
		log.Record(slog.LevelInfo, l.Program, first, slog.String("text", printable.Text(whole)))
		return err
	}
	fmt.Fprint(l.Out, printable.Text(text.String()))
	return err
}

// Show takes the present figures of a process and replaces the line of progress, unless
// that was replaced less than a second ago.
func (l *Line) Show(pid int, now Figures) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.Progress {
		return
	}
	if l.each == nil {
		l.each = map[int]Figures{}
	}
	l.each[pid] = now
	passed := time.Since(l.at)
	if passed < showEvery {
		return
	}
	var all Figures
	for _, f := range l.each {
		all.Calls += f.Calls
		all.Lost += f.Lost
		all.Pauses += f.Pauses
		all.Unknown += f.Unknown
		all.Blocks += f.Blocks
		all.Bytes += f.Bytes
	}
	rate := float64(all.Calls-l.calls) / passed.Seconds()
	l.calls, l.at, l.shown = all.Calls, l.at.Add(passed), true
	fmt.Fprintf(l.Out, "\r\x1b[K%s events/s, %s", Count(rate), all.text())
}

// Say replaces the line of progress by a text.
func (l *Line) Say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Progress {
		l.shown = true
		fmt.Fprintf(l.Out, "\r\x1b[K%s", printable.Name(text))
	}
}

// Clear removes the line of progress.
func (l *Line) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
}

func (l *Line) erase() {
	if l.shown {
		fmt.Fprint(l.Out, "\r\x1b[K")
		l.shown = false
	}
}
