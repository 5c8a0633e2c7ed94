package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"rtrace-bpf/trace"
)

// Unknown is the host or service of a trace that names none.
const Unknown = "unknown"

// noDate is the date of a trace that does not contain it. Readers of Hive's folders treat it
// as NULL.
const noDate = "__HIVE_DEFAULT_PARTITION__"

// Source is what is known of a trace before its calls are read.
type Source struct {
	ID      string // see [ID]
	File    string // name of the file without its folder
	Host    string // empty for [Unknown]
	Service string // empty for the name of the program, if it is known, or [Unknown]
	Header  trace.Header
	Process trace.Process
	PID     int32 // of Process
	First   int64 // time of the first call, on the trace's clock; 0 if unknown
	Start   int64 // the same in ns since 1970; 0 if unknown
	// NamesOfFiles reports that names come also from files of this machine.
	NamesOfFiles bool
}

// ID returns the identity of a trace: the first 16 hexadecimal digits of the SHA-256 of
// its bytes.
func ID(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// ReadHead fills in what the records before the first call contain.
func (s *Source) ReadHead(r trace.Reader) error {
	var rec trace.Record
	for headers, processes := 0, 0; ; {
		switch err := r.ReadRecord(&rec); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		switch rec.Kind {
		case trace.KindHeader:
			if headers++; headers == 1 {
				s.Header = rec.Clone().Header
			}
		case trace.KindProcess:
			if processes++; processes == 1 {
				s.Process, s.PID = rec.Clone().Process, rec.PID
			}
		case trace.KindCall:
			if s.First = rec.Time; s.First != 0 {
				s.Start = s.wall()
			}
			return nil
		}
	}
}

// wall returns the time of the first call in ns since 1970, or 0.
func (s *Source) wall() int64 {
	switch {
	case s.Header.Clock == trace.ClockWall:
		return s.First
	case s.Header.WallTime != 0:
		return s.First - s.Header.ClockTime + s.Header.WallTime
	}
	return s.Process.WallTime
}

// partition returns the folder of a trace within a table.
func (s *Source) partition() string {
	date := noDate
	if s.Start != 0 {
		date = time.Unix(0, s.Start).UTC().Format(time.DateOnly)
	}
	host, service := s.Host, s.Service
	if host == "" {
		host = Unknown
	}
	if service == "" {
		service = s.Process.Program()
	}
	if service == "" {
		service = Unknown
	}
	return filepath.Join("date="+date, "host="+escaped(host), "service="+escaped(service))
}

// escaped returns a text as a part of the name of a folder, as Hive escapes it. No folder
// is outside of its parent.
func escaped(text string) string {
	return strings.NewReplacer("+", "%20", "~", "%7E").Replace(url.QueryEscape(text))
}
