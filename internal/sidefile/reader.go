package sidefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"rtrace-bpf/internal/jsonrecord"
	"rtrace-bpf/internal/jsontext"
	"rtrace-bpf/trace"
)

// Is reports whether r begins like a side file.
func Is(r io.Reader) bool {
	head := make([]byte, 256)
	n, _ := io.ReadFull(r, head) // less is fine
	line, _, err := jsontext.NewLines(bytes.NewReader(head[:n]), len(head)).Next()
	return err == nil && checkFormat(jsontext.NewCursor(false), line) == nil
}

func checkFormat(c *jsontext.Cursor, line []byte) error {
	var (
		format string
		v      uint64
	)
	c.Reset(line)
	for c.Open('{'); c.More('}'); {
		switch string(c.Key()) {
		case "format":
			format = c.String()
		case "version":
			v = c.Uint(math.MaxUint64)
		default:
			c.Skip()
		}
	}
	c.End()
	switch {
	case c.Err() != nil:
		return c.Err()
	case format != formatName:
		return fmt.Errorf("the first line does not contain \"format\":%q", formatName)
	case v == 0 || v > version:
		return fmt.Errorf("version %d is %w", v, trace.ErrUnsupported)
	}
	return nil
}

// chunk is a line about calls.
type chunk struct {
	from, to uint64
	tids     []tidRun
	stacks   []stackRun
	sizes    []size
}

type tidRun struct {
	tid int32
	n   uint64
}

type stackRun struct {
	q quality
	n uint64
}

type size struct{ pos, size uint64 }

// placed is a record and its position.
type placed struct {
	at uint64
	r  *trace.Record
}

// source reads the lines of a side file.
type source struct {
	lines  *jsontext.Lines
	p      *jsonrecord.Parser
	at     uint64 // of the record being read
	lastAt uint64 // of the last record
	lastTo uint64 // of the last chunk
	heap   *HeapInfo
}

func newSource(r io.Reader) *source {
	return &source{lines: jsontext.NewLines(r, maxLine), p: jsonrecord.NewParser(false)}
}

func (s *source) begin() error {
	line, offset, err := s.lines.Next()
	if errors.Is(err, io.EOF) {
		err = errors.New("it is empty")
	}
	if err == nil {
		err = checkFormat(s.p.Cursor, line)
	}
	return wrap(offset, err)
}

func wrap(offset int64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("offset %d: %w", offset, err)
}

// wrap returns the error of the line at offset.
func (s *source) wrap(offset int64) error {
	return wrap(offset+int64(s.p.Offset()), s.p.Err())
}

// next reads a line. If it is a chunk, next stores it in c and returns true;
// otherwise it returns a record. The end is io.EOF.
func (s *source) next(c *chunk) (isChunk bool, r placed, err error) {
	for {
		line, offset, err := s.lines.Next()
		if errors.Is(err, io.EOF) {
			return false, placed{}, io.EOF
		}
		if err != nil {
			return false, placed{}, wrap(offset, err)
		}
		s.p.Reset(line)
		if s.p.Blank() {
			continue
		}
		if isFacts(line) {
			continue // for ReadFacts
		}
		if bytes.HasPrefix(line, []byte(heapInfoLine)) {
			if s.heap, err = parseHeapInfo(line); err != nil {
				return false, placed{}, wrap(offset, err)
			}
			continue
		}
		s.p.Open('{')
		isChunk = s.p.More('}') && string(s.p.Key()) == "from"
		if s.p.Err() != nil {
			return false, placed{}, s.wrap(offset)
		}
		s.p.Reset(line)
		if isChunk {
			s.chunk(c)
		} else {
			s.at = 0
			r.r = new(trace.Record)
			s.p.Record(r.r, s.member)
			r.at = s.at
		}
		if s.p.Err() != nil {
			return false, placed{}, s.wrap(offset)
		}
		return isChunk, r, wrap(offset, s.check(isChunk, c, r))
	}
}

// member reads the additional member of a record in a side file.
func (s *source) member(key []byte) bool {
	if string(key) != "at" {
		return false
	}
	s.at = s.p.Uint(math.MaxUint64)
	return true
}

// check checks the order of the lines.
func (s *source) check(isChunk bool, c *chunk, r placed) error {
	switch {
	case isChunk && (c.from < s.lastTo || c.to < c.from):
		return fmt.Errorf("chunk from %d to %d is out of order", c.from, c.to)
	case isChunk:
		s.lastTo = c.to
	case r.at < s.lastAt:
		return fmt.Errorf("record at %d is out of order", r.at)
	case !held(r.r.Kind):
		return fmt.Errorf("a side file holds no %v", r.r.Kind)
	default:
		s.lastAt = r.at
	}
	return nil
}

func (s *source) chunk(c *chunk) {
	p := s.p
	*c = chunk{tids: c.tids[:0], stacks: c.stacks[:0], sizes: c.sizes[:0]}
	for p.Open('{'); p.More('}'); {
		switch string(p.Key()) {
		case "from":
			c.from = p.Uint(math.MaxUint64)
		case "to":
			c.to = p.Uint(math.MaxUint64)
		case "tid":
			for p.Open('['); p.More(']'); {
				run := tidRun{tid: int32(p.Int(math.MaxInt32))}
				run.n = s.second()
				c.tids = append(c.tids, run)
			}
		case "stack":
			for p.Open('['); p.More(']'); {
				at := p.Offset()
				q, ok := parseQuality(p.String())
				if !ok {
					p.Fail(at, errors.New("unknown quality of a stack"))
				}
				c.stacks = append(c.stacks, stackRun{q, s.second()})
			}
		case "size":
			for p.Open('['); p.More(']'); {
				z := size{pos: p.Uint(math.MaxUint64)}
				z.size = s.second()
				c.sizes = append(c.sizes, z)
			}
		default:
			p.Skip()
		}
	}
	p.End()
}

// second reads the second number of a pair.
func (s *source) second() uint64 {
	if !s.p.More(']') {
		s.p.Fail(s.p.Offset(), errors.New("value without a second one"))
	}
	return s.p.Uint(math.MaxUint64)
}
