package decoder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/trace"
)

// OpenFile opens the trace at path. Unless Options.NoSide is set, it also opens the
// side file of the trace: path.side, also without the suffix of a compression, or the
// file that the trace names, in the folder of the trace.
func OpenFile(path string, o Options) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, plain(err))
	}
	t, err := Open(f, o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", path, err), f.Close())
	}
	t.close = append(t.close, f.Close)
	if !o.NoSide {
		t.addSide(path, o.Warn)
	}
	return t, nil
}

// plain removes the path and the system call from an error of package os.
func plain(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// addSide overlays t with its side file, if there is one.
func (t *Trace) addSide(path string, warn func(error)) {
	names := []string{path + ".side"}
	for _, suffix := range []string{".gz", ".zst"} {
		if short, ok := strings.CutSuffix(path, suffix); ok {
			names = append(names, short+".side")
		}
	}
	side := openFirst(names)
	if side == nil {
		ahead := &readAhead{r: t.ending.Reader}
		t.ending.Reader = ahead
		if name := ahead.attachment("side"); filepath.IsLocal(name) {
			name = filepath.Join(filepath.Dir(path), name)
			if side = openFirst([]string{name}); side == nil {
				t.ending.lost, t.ending.warn = name, warn
			}
		}
	}
	if side == nil {
		return
	}
	in, err := NewInput(side)
	if err != nil {
		if warn != nil {
			warn(fmt.Errorf("side file is not used: %w", err))
		}
		_ = side.Close() // only read
		return
	}
	if t.facts != nil {
		if err := t.readFacts(side.Name()); err != nil && warn != nil {
			warn(fmt.Errorf("side file: %w", err))
		}
	}
	t.Side = side.Name()
	t.ending.side = sidefile.Overlay(t.ending.Reader, in, warn)
	t.ending.Reader = t.ending.side
	t.close = append(t.close, in.Close, side.Close)
}

// readFacts reads the facts in the side file at path and gives them to the reader of
// the format.
func (t *Trace) readFacts(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return plain(err)
	}
	defer f.Close() // only read
	in, err := NewInput(f)
	if err != nil {
		return err
	}
	facts, err := sidefile.ReadFacts(in, t.Format)
	if err = errors.Join(err, in.Close()); err != nil || facts == nil {
		return err
	}
	t.Facts = facts
	return t.facts.SetFacts(facts)
}

// openFirst opens the first of the named files that is a regular file. It returns nil
// if there is none.
func openFirst(names []string) *os.File {
	for _, name := range names {
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if f, err := os.Open(name); err == nil {
			return f
		}
	}
	return nil
}

// maxAhead is how many records attachment reads ahead at most.
const maxAhead = 64

// readAhead is a reader that can read records ahead.
type readAhead struct {
	r     trace.Reader
	ahead []*trace.Record
	err   error
}

// attachment returns the path of the attachment with the given name, or "" if none
// precedes the first call.
func (a *readAhead) attachment(name string) (path string) {
	for len(a.ahead) < maxAhead {
		var rec trace.Record
		if a.err = a.r.ReadRecord(&rec); a.err != nil {
			break
		}
		a.ahead = append(a.ahead, rec.Clone())
		if rec.Kind == trace.KindAttachment && rec.Attachment.Name == name {
			return rec.Attachment.Path
		}
		if rec.Kind == trace.KindCall {
			break
		}
	}
	return ""
}

func (a *readAhead) ReadRecord(r *trace.Record) error {
	if len(a.ahead) > 0 {
		*r = *a.ahead[0]
		a.ahead = a.ahead[1:]
		return nil
	}
	if a.err != nil {
		return a.err
	}
	return a.r.ReadRecord(r)
}

var _ io.Closer = (*Trace)(nil)
