package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"rtrace-bpf/internal/printable"
)

// Log is a stream for messages that prints each as one line of JSON: its time, level, msg and
// program, and pid and hint where there are any. Text that is written to it without a level,
// such as what a child prints, becomes a message for each line. Its methods may be called by
// several goroutines.
type Log struct {
	out  io.Writer
	log  slog.Handler
	mu   sync.Mutex
	rest []byte // of a line that has not ended
}

// NewLog returns a Log that prints to out.
func NewLog(out io.Writer) *Log {
	return &Log{out: out, log: slog.NewJSONHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})}
}

// Redirect returns a stream for messages in the same form as those of w, which go to the
// result of through. That gets the stream that w prints to.
func Redirect(w io.Writer, through func(io.Writer) io.Writer) io.Writer {
	if l, ok := w.(*Log); ok {
		return NewLog(through(l.out))
	}
	return through(w)
}

// Message prints a message of the program called name: as a line of text, or as JSON if w is a
// Log. It removes everything that could affect a terminal. Text has no level.
func Message(w io.Writer, level slog.Level, name, text string) {
	if l, ok := w.(*Log); ok {
		l.Record(level, name, text)
		return
	}
	fmt.Fprintln(w, printable.Text(name+": "+text))
}

// process finds the first process that a message names.
var process = regexp.MustCompile(`\bprocess ([0-9]+)\b`)

// Record prints a message of the program called name.
func (l *Log) Record(level slog.Level, name, text string, more ...slog.Attr) {
	if without, ok := strings.CutPrefix(text, "warning: "); ok {
		level, text = slog.LevelWarn, without
	}
	r := slog.NewRecord(time.Now(), level, printable.Text(strings.TrimSuffix(text, "\n")), 0)
	r.AddAttrs(slog.String("program", name))
	if found := process.FindStringSubmatch(text); found != nil {
		if pid, err := strconv.Atoi(found[1]); err == nil {
			r.AddAttrs(slog.Int("pid", pid))
		}
	}
	r.AddAttrs(more...)
	_ = l.log.Handle(context.Background(), r) // there is no other place for messages
}

// Write implements io.Writer for text without a level.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, b...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		l.line(line)
		l.rest = rest
	}
}

// Flush prints what was written after the last line.
func (l *Log) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rest) > 0 {
		l.line(l.rest)
	}
	l.rest = nil
}

// line prints a line of text. Its program is what is before the first colon, if that is a
// name of this project's programs.
func (l *Log) line(text []byte) {
	name, message, ok := strings.Cut(string(text), ": ")
	if !ok || !strings.HasPrefix(name, "rtrace") {
		name, message = "", string(text)
	}
	l.Record(slog.LevelInfo, name, message)
}

// report prints an error with a hint, which may be empty.
func (l *Log) report(level slog.Level, name, text, hint string) {
	var more []slog.Attr
	if hint != "" {
		more = append(more, slog.String("hint", printable.Text(hint)))
	}
	l.Record(level, name, text, more...)
}
