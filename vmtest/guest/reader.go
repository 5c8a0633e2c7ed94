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

// Kind is the kind of an Event.
type Kind int

// The kinds of events.
const (
	Console Kind = iota // Text: a line that belongs to no job: of the firmware or the kernel
	Up                  // Text: the kernel's release
	Start               // Job
	Output              // Job, Text: a line, or a part of a long one
	End                 // Job, Status
	Error               // Job, Text
	File                // Job, Text: its path, Data
	Over
)

// Event is one report of a guest.
type Event struct {
	Kind   Kind
	Job    int
	Status int
	Text   string
	Data   []byte
}

// Limits of what the host stores for a guest.
const (
	maxLine = 1 << 16
	maxFile = 1 << 28
)

// Reader reads the reports of a guest.
type Reader struct {
	in     *bufio.Reader
	prefix string
	job    int    // the running job, -1 if none
	long   bool   // the last text did not complete its line
	file   *Event // the file being received
	packed []byte
}

// NewReader returns a Reader for the console of a machine with this token.
func NewReader(r io.Reader, token string) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, maxLine), prefix: token + " ", job: -1}
}

// Next returns the next event, and io.EOF at the end of the console. A malformed line of init
// is an error: the console was damaged.
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
		report, ours := strings.CutPrefix(text, r.prefix)
		if !ours || !startsLine || r.long {
			if r.job < 0 {
				return Event{Kind: Console, Text: text}, nil
			}
			return Event{Kind: Output, Job: r.job, Text: text}, nil
		}
		event, complete, err := r.line(strings.TrimSuffix(report, "\n"))
		if err != nil {
			return Event{}, fmt.Errorf("console: line %q: %w", strings.TrimSpace(report), err)
		}
		if complete {
			return event, nil
		}
	}
}

// line parses a line of init. The lines of a file are one event together.
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
		return nil, errors.New("the file was damaged in transfer")
	}
	return content, nil
}
