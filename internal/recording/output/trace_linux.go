package output

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/outfile"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/internal/spool"
	"rtrace-bpf/trace"
)

// Options select where traces go.
type Options struct {
	Path      string    // a file, or a directory; empty for the current directory
	Stdout    io.Writer // an *os.File where the trace goes instead; nil for Path
	Terminal  bool      // Stdout is a terminal, and the trace is a text for people
	Suffix    string    // of files in a directory
	Side      string    // path of the side file; empty for one next to the trace
	Unwritten bool      // no trace is written, only files that would be next to it
	MaxSize   int64     // of the trace with all that belongs to it, in bytes; 0 for no limit
	Copies    []Copy    // files that are attached
	Postproc  *Postproc
	// Waiting is called when waiting for a reader of the trace begins and ends; nil for
	// nothing.
	Waiting func(on bool)
}

// Reserve is how many bytes below MaxSize a recording ends: the encoder and the side file
// have less in memory, which is written then.
const Reserve = 1 << 20

// SideAttachment is the name of the side file as an attachment.
const SideAttachment = "side"

// Trace is where the records of one process go.
type Trace struct {
	options     *Options
	pid         int
	file        *outfile.File
	base        string             // path that the trace would have if it were written; empty if it is
	post        *postprocessor     // what the trace goes through to file; nil for nothing
	attached    []*outfile.File    // files that belong to the trace
	attachments []trace.Attachment // names of these that the trace begins with
	spool       *spool.File        // keeps records until the end; nil if nothing does
	side        *sidefile.Writer   // nil for none
	encoder     trace.Writer       // nil until Encode
}

// A NoDirectoryError reports that the trace is not a regular file, so that other files
// cannot be written next to it.
type NoDirectoryError struct {
	Files string // that cannot be written
	Path  string // of the trace
}

// Error returns the text of the error.
func (e *NoDirectoryError) Error() string {
	return fmt.Sprintf("%s: files are written to the directory of the trace, and %s is not a regular file", e.Files, e.Path)
}

// Open creates the trace of a process before anything is attached to that, so that a wrong
// path costs it nothing. After an error, nothing is left. o must not change. ctx ends
// waiting for a reader of a FIFO.
func Open(ctx context.Context, o *Options, pid int) (*Trace, error) {
	if o.Unwritten {
		return unwritten(o, pid)
	}
	file, err := OpenFile(ctx, o, pid)
	if err != nil {
		return nil, err
	}
	t := &Trace{options: o, pid: pid, file: file}
	if err = t.copyAll(); err == nil && o.Postproc != nil {
		t.post, err = o.Postproc.start(t.printable())
	}
	if err != nil {
		return nil, errors.Join(err, t.Discard())
	}
	return t, nil
}

// printable returns the file as a terminal can show it: the trace has names of files of
// other people.
func (t *Trace) printable() io.Writer {
	if t.options.Terminal {
		return printable.NewWriter(t.file)
	}
	return t.file
}

// Keep makes the trace keep its records until the end, in a temporary file.
func (t *Trace) Keep() (*spool.File, error) {
	var err error
	t.spool, err = spool.Create(t.TempDir())
	return t.spool, err
}

// TempDir returns the directory for temporary files: that of the trace, where there is
// room for it.
func (t *Trace) TempDir() string {
	if t.Regular() {
		return filepath.Dir(t.Path())
	}
	return os.TempDir()
}

// Encode begins the trace in a format, and its side file. If the trace keeps its records,
// Keep was called before.
func (t *Trace) Encode(format string, o encoder.Options) (*Writer, error) {
	to := t.printable()
	if t.post != nil {
		to = t.post
	}
	if t.spool != nil {
		to = &yielding{to, t.spool}
	}
	var err error
	if t.encoder, err = encoder.New(format, to, o); err != nil {
		return nil, err
	}
	w := &Writer{encoder: t.encoder, attach: t.attachments}
	path := t.sidePath(format)
	if path == "" {
		return w, nil
	}
	if format == "sprtrace" {
		side := trace.Attachment{Name: SideAttachment, Path: filepath.Base(path)}
		w.attach = append([]trace.Attachment{side}, w.attach...)
	}
	t.side, err = sidefile.NewWriter(path, encoder.PositionsOf(format, t.encoder))
	w.side = t.side
	return w, err
}

// sidePath returns the path of the file for what the format cannot represent, empty for
// none.
func (t *Trace) sidePath(format string) string {
	switch {
	case t.options.Side != "":
		return t.options.Side
	case WholeFormat(format) || !t.Regular() || t.post != nil:
		return ""
	}
	return t.Path() + ".side"
}

// WholeFormat reports whether a format represents everything that a trace contains.
func WholeFormat(name string) bool {
	f, err := encoder.Lookup(name)
	return err == nil && f.Whole
}

// Path returns the path of the trace, for messages.
func (t *Trace) Path() string { return t.file.Path() }

// Base returns the path that the names of files next to the trace begin with. It reports false
// if the trace has no directory.
func (t *Trace) Base() (path string, ok bool) {
	if t.base != "" {
		return t.base, true
	}
	return t.file.Path(), t.file.Regular()
}

// Regular reports whether the trace is a regular file.
func (t *Trace) Regular() bool { return t.file.Regular() }

// Size returns the size of the trace so far, in bytes, without files that belong to it.
func (t *Trace) Size() int64 { return t.file.Size() }

// Side returns the side file, nil if there is none.
func (t *Trace) Side() *sidefile.Writer { return t.side }

// Encoder returns the encoder, which has remarks about the trace.
func (t *Trace) Encoder() trace.Writer { return t.encoder }

// written returns how many bytes the trace takes on the disk with what belongs to it, or
// would take if it were not piped elsewhere.
func (t *Trace) written() int64 {
	if t.post != nil {
		return t.post.sent
	}
	n := t.file.Size()
	for _, f := range t.attached {
		n += f.Size()
	}
	if t.spool != nil {
		n += t.spool.Size()
	}
	if t.side != nil {
		n += t.side.Size()
	}
	return n
}

// Room returns how many bytes may still be written.
func (t *Trace) Room() int64 {
	if t.options.MaxSize == 0 {
		return math.MaxInt64
	}
	return t.options.MaxSize - t.written()
}

// Full reports whether the trace is as large as MaxSize allows.
func (t *Trace) Full() bool { return t.Room() <= Reserve }

// Close completes the files after the writer of the trace was closed. It returns the
// errors that were not returned before.
func (t *Trace) Close() error {
	var errs []error
	if t.post != nil {
		errs = append(errs, t.post.Close())
	}
	for _, f := range t.attached {
		errs = append(errs, f.Close())
	}
	return errors.Join(append(errs, t.file.Close())...)
}

// Discard removes the files: nothing was recorded.
func (t *Trace) Discard() error {
	var errs []error
	if t.post != nil {
		_ = t.post.Close() // it complains about an input without a trace
	}
	for _, f := range t.attached {
		errs = append(errs, f.Discard())
	}
	errs = append(errs, t.file.Discard())
	if t.spool != nil {
		errs = append(errs, t.spool.Close())
	}
	if t.side != nil {
		errs = append(errs, t.side.Discard())
	}
	return errors.Join(errs...)
}

// endsAsDirectory reports whether a path cannot be that of a file.
func endsAsDirectory(path string) bool { return strings.HasSuffix(path, string(filepath.Separator)) }
