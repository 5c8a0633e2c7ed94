package main

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/report/table"
)

// swapFlags are the flags of the tables of Dynamic Analyzer, the host tool of SWAP. They
// read traces of every format.
type swapFlags struct {
	blockFlags
	window windowFlags
	tsv    bool
}

// tsvFlag declares --tsv, which all of them have.
func (o *swapFlags) tsvFlag(f *pflag.FlagSet) {
	f.BoolVar(&o.tsv, "tsv", false, "print cells with a tab between them instead of aligned columns, sizes and times as plain numbers")
}

func (o *swapFlags) addWindow(f *pflag.FlagSet) {
	o.window.add(f)
	o.tsvFlag(f)
}

func (o *swapFlags) addNames(f *pflag.FlagSet) {
	o.source.addSource(f)
	f.BoolVar(&o.mangled, "no-demangle", false, "print mangled names of callers")
}

// swapAbout is the end of their help.
const swapAbout = "\n\nThis is one of the tables of Tizen's Dynamic Analyzer, for a trace of any format. With --tsv a spreadsheet can read it."

// sheet is a table that is printed in aligned columns or with tabs.
type sheet struct {
	columns []table.Column
	text    *table.Table // nil for tabs
	out     *bufio.Writer
}

// newSheet begins a table.
func newSheet(w io.Writer, tsv bool, columns ...table.Column) *sheet {
	s := &sheet{columns: columns, out: bufio.NewWriter(w)}
	if !tsv {
		s.text = table.New(columns...)
		return s
	}
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.Title
	}
	s.row(titles...)
	return s
}

// row adds a row.
func (s *sheet) row(cells ...string) {
	for i := range cells {
		cells[i] = printable.Name(cells[i])
	}
	if s.text != nil {
		s.text.Row(cells...)
		return
	}
	for i, c := range cells {
		if i > 0 {
			_ = s.out.WriteByte('\t') // Flush reports errors
		}
		_, _ = s.out.WriteString(strings.NewReplacer("\t", " ", "\n", " ", "\r", " ").Replace(c))
	}
	_ = s.out.WriteByte('\n')
}

// close prints the remaining rows.
func (s *sheet) close() error {
	if s.text != nil {
		if _, err := s.text.WriteTo(s.out); err != nil {
			return err
		}
	}
	return s.out.Flush()
}

// left returns a column that is aligned to the left.
func left(title string) table.Column { return table.Column{Title: title, Left: true} }

// right returns a column that is aligned to the right.
func right(title string) table.Column { return table.Column{Title: title} }

// count returns a number as a cell.
func count(n uint64) string { return strconv.FormatUint(n, 10) }

// id returns the id of a process or thread as a cell.
func id(n int32) string { return strconv.FormatInt(int64(n), 10) }

// hexAddress returns an address as a cell.
func hexAddress(addr uint64) string { return "0x" + strconv.FormatUint(addr, 16) }

// sinceStart returns a time as seconds since the first one, or "-" without one.
func sinceStart(t, first int64) string {
	if t == 0 {
		return "-"
	}
	return secondsOf(t - first)
}

// secondsOf returns nanoseconds as seconds.
func secondsOf(ns int64) string { return strconv.FormatFloat(float64(ns)/1e9, 'f', 9, 64) }

// step is an interval in a trace: a time or a number of calls.
type step struct {
	time  time.Duration
	calls uint64
}

func parseStep(text string) (s step, err error) {
	if s.calls, err = strconv.ParseUint(text, 10, 64); err == nil && s.calls > 0 {
		return s, nil
	}
	if s.time, err = time.ParseDuration(text); err != nil || s.time <= 0 {
		return s, cli.Usagef("--every %s: write a time such as 100ms or 5s, or a number of calls such as 1000", text)
	}
	return s, nil
}
