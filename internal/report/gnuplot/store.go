// Package gnuplot writes series of numbers as data files for gnuplot. All
// series grow at the same time; until they are written, it keeps them in memory
// and one temporary file.
package gnuplot

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"rtrace-bpf/internal/analysis/consumption"
)

// Options of a Store.
type Options struct {
	// Calls reports that x is a number of calls and not a time.
	Calls bool
	// Legacy writes files as the original does: with numbers of 32 bits, and
	// with file names numbered from 0 across all reports.
	Legacy bool
}

// Store collects series. Create it with New and call Close at the end.
type Store struct {
	options Options
	all     []*series
	temp    *os.File
	size    int64
	err     error
}

// series is one series: extents in the temporary file, followed by the buffer.
type series struct {
	report  consumption.Report
	buffer  []byte
	extents []extent
}

type extent struct{ offset, size int64 }

var _ consumption.Sink = (*Store)(nil)

const (
	full      = 16 << 10 // bytes of a buffer that are moved to the file
	maxSeries = 4096
)

// New returns an empty Store.
func New(o Options) *Store { return &Store{options: o} }

// Close closes and removes the temporary file.
func (s *Store) Close() error {
	if s.temp == nil {
		return nil
	}
	err := errors.Join(s.temp.Close(), removed(s.temp.Name()))
	s.temp = nil
	return err
}

// removed removes a file that may be gone already.
func removed(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Begin implements consumption.Sink. More than 4096 series are an error (see
// Err).
func (s *Store) Begin(report consumption.Report, heading string) int {
	if len(s.all) == maxSeries {
		s.fail(fmt.Errorf("more than %d series", maxSeries))
		return len(s.all) - 1
	}
	line := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, heading)
	s.all = append(s.all, &series{report: report, buffer: []byte(line + "\n")})
	return len(s.all) - 1
}

// Point implements consumption.Sink. Times are written in milliseconds.
func (s *Store) Point(n int, x int64, y uint64) {
	b := s.all[n].buffer
	switch {
	case s.options.Calls:
		b = strconv.AppendInt(b, x, 10)
	case s.options.Legacy:
		b = strconv.AppendInt(b, x/1e6, 10)
	default:
		b = appendMilliseconds(b, x)
	}
	b = append(b, ' ')
	if s.options.Legacy {
		b = strconv.AppendInt(b, int64(int32(uint32(y))), 10)
	} else {
		b = strconv.AppendUint(b, y, 10)
	}
	s.put(n, append(b, '\n'))
}

// appendMilliseconds appends nanoseconds as milliseconds, with decimals if
// there are any.
func appendMilliseconds(b []byte, ns int64) []byte {
	if ns < 0 {
		b, ns = append(b, '-'), -ns
	}
	b = strconv.AppendInt(b, ns/1e6, 10)
	if rest := ns % 1e6; rest > 0 {
		b = fmt.Appendf(b, ".%06d", rest)
		for b[len(b)-1] == '0' {
			b = b[:len(b)-1]
		}
	}
	return b
}

// Break implements consumption.Sink.
func (s *Store) Break(n int) { s.put(n, append(s.all[n].buffer, '\n')) }

// Row implements consumption.Sink.
func (s *Store) Row(n int, values ...uint64) {
	b := s.all[n].buffer
	for i, v := range values {
		if i > 0 {
			b = append(b, '\t')
		}
		if s.options.Legacy {
			v = uint64(uint32(v))
		}
		b = strconv.AppendUint(b, v, 10)
	}
	s.put(n, append(b, '\n'))
}

// put stores the buffer of a series, and moves it to the temporary file if it
// is full.
func (s *Store) put(n int, b []byte) {
	x := s.all[n]
	x.buffer = b
	if len(b) < full || s.err != nil {
		if s.err != nil {
			x.buffer = b[:0]
		}
		return
	}
	if s.temp == nil {
		f, err := os.CreateTemp("", "rtrace-series-")
		if err != nil {
			s.fail(fmt.Errorf("making a temporary file for the series: %w", err))
			return
		}
		s.temp = f
		_ = os.Remove(f.Name()) // if this fails, Close removes it
	}
	if _, err := s.temp.WriteAt(b, s.size); err != nil {
		s.fail(fmt.Errorf("writing the temporary file of the series: %w", err))
		return
	}
	x.extents = append(x.extents, extent{s.size, int64(len(b))})
	s.size += int64(len(b))
	x.buffer = b[:0]
}

func (s *Store) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Err returns the first error of adding to series.
func (s *Store) Err() error { return s.err }

// Len returns the number of series.
func (s *Store) Len() int { return len(s.all) }

// Name returns the file name of a series: its report and its number in that, or
// in legacy mode the original's name.
func (s *Store) Name(n int) string {
	if s.options.Legacy {
		return fmt.Sprintf("timeline_%d.dat", n)
	}
	number := 0
	for _, x := range s.all[:n] {
		if x.report == s.all[n].report {
			number++
		}
	}
	return fmt.Sprintf("%s_%d.dat", s.all[n].report, number)
}

// Write writes a series.
func (s *Store) Write(w io.Writer, n int) error {
	out := bufio.NewWriterSize(w, 1<<16)
	for _, e := range s.all[n].extents {
		if _, err := io.Copy(out, io.NewSectionReader(s.temp, e.offset, e.size)); err != nil {
			return err
		}
	}
	if _, err := out.Write(s.all[n].buffer); err != nil {
		return err
	}
	return out.Flush()
}
