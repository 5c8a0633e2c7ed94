package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// windowFlags select a part of a trace.
type windowFlags struct {
	from, to string
	contexts []string

	start, end point
}

func (w *windowFlags) add(f *pflag.FlagSet) {
	w.addFrom(f, "count only allocations after `POINT`")
}

// addFrom is add for a command in which --from has another meaning.
func (w *windowFlags) addFrom(f *pflag.FlagSet, from string) {
	f.StringVar(&w.from, "from", "", from+": a time since the first call such as 10s or 5m, a number of calls, or the name of a mark; see Points")
	f.StringVar(&w.to, "to", "", "end at `POINT` instead of the end of the trace")
	f.StringSliceVar(&w.contexts, "context", nil, "count only allocations in one of the contexts `NAMES`, separated by commas")
}

// whole reports whether the flags select the whole trace.
func (w *windowFlags) whole() bool { return w.from == "" && w.to == "" && len(w.contexts) == 0 }

// pointList explains the values of --from and --to.
var pointList = cli.List{Title: "Points", Rows: []cli.ListRow{
	{Name: "10s, 5m, 1h30m", Text: "a time since the first call of the trace"},
	{Name: "1000", Text: "after call 1000, by the numbers that the commands print"},
	{Name: "NAME, mark:NAME", Text: "the place where the trace declares the context or mark NAME; for --to the first one after --from"},
}}

// check parses the points.
func (w *windowFlags) check() (err error) {
	if w.start, err = parsePoint("--from", w.from); err == nil {
		w.end, err = parsePoint("--to", w.to)
	}
	return err
}

// point is a moment of a trace.
type point struct {
	kind pointKind
	call uint64
	time time.Duration
	mark string
}

type pointKind int

const (
	noPoint pointKind = iota
	atCall
	atTime
	atMark
)

func parsePoint(flag, text string) (point, error) {
	if text == "" {
		return point{}, nil
	}
	if name, ok := strings.CutPrefix(text, "mark:"); ok {
		return point{kind: atMark, mark: name}, nil
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return point{kind: atCall, call: n}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		if d < 0 {
			return point{}, cli.Usagef("%s %s: times count from the first call and are not negative", flag, text)
		}
		return point{kind: atTime, time: d}, nil
	}
	return point{kind: atMark, mark: text}, nil
}

// window follows the points of windowFlags through a trace.
type window struct {
	flags          *windowFlags
	started, ended bool
	reversed       bool   // the end came first
	before         uint64 // calls that were passed on before the window
	first          int64  // time of the first call
	calls          uint64
	mask           uint32 // mask of the selected contexts
	names          []string
}

// maxMarks limits the names of marks in a message.
const maxMarks = 16

func (w *windowFlags) open() *window {
	return &window{flags: w, started: w.start.kind == noPoint}
}

// whole reports whether the window is the whole trace.
func whole() *window { return new(windowFlags).open() }

// context adds a declaration of a context or mark.
func (w *window) context(c *trace.Context) {
	if slices.Contains(w.flags.contexts, c.Name) {
		w.mask |= c.ID
	}
	if len(w.names) < maxMarks && !slices.Contains(w.names, c.Name) {
		w.names = append(w.names, strings.Clone(c.Name))
	}
	switch s, e := &w.flags.start, &w.flags.end; {
	case !w.started:
		w.started = s.kind == atMark && s.mark == c.Name
	case e.kind == atMark && e.mark == c.Name:
		w.ended = true
	}
}

// call adds the next call, whose time does not wrap at midnight.
func (w *window) call(r *trace.Record) {
	w.calls++
	if w.first == 0 {
		w.first = r.Time
	}
	if !w.started {
		w.started = w.passed(&w.flags.start, r)
	}
	if !w.ended {
		w.ended = w.passed(&w.flags.end, r)
		w.reversed = w.ended && !w.started
	}
}

// passed reports whether a call comes after a point. A mark is passed where it is declared.
func (w *window) passed(p *point, r *trace.Record) bool {
	switch p.kind {
	case atCall:
		n := r.Call.Seq
		if n == 0 {
			n = w.calls
		}
		return n > p.call
	case atTime:
		return r.Time-w.first > int64(p.time)
	}
	return false
}

// counts reports whether an allocation by the current call counts.
func (w *window) counts(r *trace.Record) bool { return w.started && w.inContext(r) }

// inContext reports whether a call was made in one of the selected contexts.
func (w *window) inContext(r *trace.Record) bool {
	return len(w.flags.contexts) == 0 || r.Call.Context&w.mask != 0
}

// missing returns an error if the trace has no such window.
func (w *window) missing() error {
	f := w.flags
	if w.calls > 0 && w.first == 0 {
		const noTimes = "%s %s: the trace has no times; give a number of calls"
		if f.start.kind == atTime {
			return cli.Usagef(noTimes, "--from", f.from)
		} else if f.end.kind == atTime {
			return cli.Usagef(noTimes, "--to", f.to)
		}
	}
	switch {
	case w.reversed:
		return cli.Usagef("--to %s is before --from %s", f.to, f.from)
	case !w.started && f.start.kind == atMark:
		return cli.Usagef("--from %s: %s", f.from, w.noPoint(f.start.mark))
	case !w.started:
		return cli.Usagef("--from %s: the trace ends before that", f.from)
	case !w.ended && f.end.kind == atMark:
		return cli.Usagef("--to %s: %s", f.to, w.noPoint(f.end.mark))
	}
	for _, name := range f.contexts {
		if !slices.Contains(w.names, name) && len(w.names) < maxMarks {
			return cli.Usagef("--context %s: %s", name, w.noMark(name))
		}
	}
	return nil
}

// noMark returns the hint for an unknown mark, with the known ones.
// noPoint returns the same hint for a point, which may have been meant as another kind.
func (w *window) noPoint(name string) string {
	text := w.noMark(name)
	if strings.ContainsAny(name[:min(1, len(name))], "0123456789") {
		text += "; write a time such as 10s or 5m, or a number of calls such as 1000"
	}
	return text
}

func (w *window) noMark(name string) string {
	if slices.Contains(w.names, name) {
		return "there is no such mark after the beginning of the window"
	}
	if len(w.names) == 0 {
		return "the trace has no marks and contexts"
	}
	return "no such mark or context; the trace has " + strings.Join(w.names, ", ")
}
