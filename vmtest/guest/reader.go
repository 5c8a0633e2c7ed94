package guest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Kind says what an Event is.
type Kind int

// The kinds of events.
const (
	Console Kind = iota // Text: a line that is no job's: firmware, kernel
	Up                  // Text: the kernel's release
	Start               // Job
	Output              // Job, Text: a line, or a part of a long one
	End                 // Job, Status
	Error               // Job, Text
	File                // Job, Text: its path, Data
	Over
)

// Event is one thing that a guest says.
type Event struct {
	Kind   Kind
	Job    int
	Status int
	Text   string
	Data   []byte
}

// Limits of what a guest can make the host keep.
const (
	maxLine = 1 << 16
	maxFile = 1 << 28
)

// Reader reads what a guest says.
type Reader struct {
	in     *bufio.Reader
	prefix string
	job    int    // the one that runs, -1 if none does
	long   bool   // the last text was not the end of its line
	file   *Event // that is being sent
	packed []byte
}

// NewReader returns a Reader of the console of a machine with this token.
func NewReader(r io.Reader, token string) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, maxLine), prefix: token + " ", job: -1}
}

// Next returns the next event; io.EOF at the end of the console. A line of init
// that makes no sense is an error: the console was damaged.
func (r *Reader) Next() (Event, error) {
	for {
		raw, err := r.in.ReadSlice('\n')
		if len(raw) == 0 && err != nil {
			return Event{}, err
		}
		if err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull) {
			return Event{}, err
		}
		text := strings.ReplaceAll(string(raw), "\r", "")
		startsLine := !r.long
		r.long = !strings.HasSuffix(text, "\n")
		said, ours := strings.CutPrefix(text, r.prefix)
		if !ours || !startsLine || r.long {
			if r.job < 0 {
				return Event{Kind: Console, Text: text}, nil
			}
			return Event{Kind: Output, Job: r.job, Text: text}, nil
		}
		event, complete, err := r.line(strings.TrimSuffix(said, "\n"))
		if err != nil {
			return Event{}, fmt.Errorf("console: line %q: %w", strings.TrimSpace(said), err)
		}
		if complete {
			return event, nil
		}
	}
}

// line reads a line of init. Those of a file are one event together.
func (r *Reader) line(text string) (e Event, complete bool, err error) {
	word, rest, _ := strings.Cut(text, " ")
	if (word == wordData || word == wordSum) != (r.file != nil) {
		return e, false, errors.New("out of place")
	}
	switch word {
	case wordUp:
		e.Kind = Up
		e.Text, err = strconv.Unquote(rest)
	case wordStart:
		e.Kind = Start
		e.Job, err = strconv.Atoi(rest)
		r.job = e.Job
	case wordEnd:
		e.Kind = End
		_, err = fmt.Sscanf(rest, "%d %d", &e.Job, &e.Status)
		r.job = -1
	case wordError:
		e.Kind = Error
		_, err = fmt.Sscanf(rest, "%d %q", &e.Job, &e.Text)
	case wordFile:
		e.Kind = File
		_, err = fmt.Sscanf(rest, "%d %q", &e.Job, &e.Text)
		r.file, r.packed = &e, nil
		return e, false, err
	case wordData:
		r.packed, err = base64.StdEncoding.AppendDecode(r.packed, []byte(rest))
		if err == nil && len(r.packed) > maxFile {
			err = errors.New("the file is too big")
		}
		return e, false, err
	case wordSum:
		e = *r.file
		r.file = nil
		e.Data, err = unpack(r.packed, rest)
	case wordOver:
		e.Kind = Over
	default:
		err = errors.New("unknown")
	}
	return e, true, err
}

func unpack(packed []byte, sum string) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(z, maxFile))
	if err != nil {
		return nil, err
	}
	if got := sha256.Sum256(content); hex.EncodeToString(got[:]) != sum {
		return nil, errors.New("the file was damaged on its way")
	}
	return content, nil
}
