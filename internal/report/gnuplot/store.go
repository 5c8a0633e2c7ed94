// Package gnuplot writes series of numbers as data files that gnuplot reads. It
// keeps them, while they come about all at once, in one temporary file.
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
	// Calls says that x is a number of calls and not a time.
	Calls bool
	// Legacy writes what the original wrote: numbers of 32 bits, and files that
	// are numbered from 0 across all reports.
	Legacy bool
}

// Store takes series. Make one with New, and Close it in the end.
type Store struct {
	options Options
	all     []*series
	temp    *os.File
	size    int64
	err     error
}

// series is one series: what was moved to the temporary file, and what follows.
type series struct {
	report  consumption.Report
	buffer  []byte
	extents []extent
}

type extent struct{ offset, size int64 }

var _ consumption.Sink = (*Store)(nil)

const (
	full      = 16 << 10 // bytes of a buffer before they are moved
	maxSeries = 4096
)

// New returns an empty Store.
func New(o Options) *Store { return &Store{options: o} }

// Close gives the memory and the temporary file up.
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

// Begin implements consumption.Sink. Behind a limit of 4096 series it fails (see Err).
func (s *Store) Begin(report consumption.Report, heading string) int {
	if len(s.all) == maxSeries {
		s.fail(fmt.Errorf("there are more than %d series", maxSeries))
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

// Point implements consumption.Sink. Times are milliseconds.
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

// appendMilliseconds writes nanoseconds as milliseconds, with what is behind the
// point if that is not 0.
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

// put takes the buffer of a series back, and moves it if it is full.
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
		_ = os.Remove(f.Name()) // else it goes when closed
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

// Err is what went wrong while series were taken.
func (s *Store) Err() error { return s.err }

// Len is the number of series.
func (s *Store) Len() int { return len(s.all) }

// Name is the name of a series' file: its report and its number in that, or in
// legacy mode the original's name.
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
