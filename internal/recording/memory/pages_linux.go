package memory

import (
	"errors"
	"fmt"

	"rtrace-bpf/internal/linux/pageflags"
	"rtrace-bpf/internal/outfile"
	"rtrace-bpf/internal/recording/output"
	"rtrace-bpf/internal/recording/status"
	"rtrace-bpf/trace"
)

// PageFiles are the names of the attachments about pages, as those of sp-rtrace's module
// pagemap.
var PageFiles = []string{"maps", "pageflags"}

// PageFlags are the files of [Pages], in an [output.NoDirectoryError].
const PageFlags = "page flags"

// Pages attaches the kernel's flags of all pages at the end of the trace.
type Pages struct {
	pid     int
	line    *status.Line
	out     *output.Trace
	process *pageflags.Process // nil if the process has ended, or the pages were written
}

// A PagesError reports that the kernel's flags of pages cannot be read.
type PagesError struct{ Err error }

// Error returns the text of the error.
func (e *PagesError) Error() string { return PageFlags + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *PagesError) Unwrap() error { return e.Err }

// OpenPages checks that the pages of a process can be read, and written next to its trace.
func OpenPages(pid int, out *output.Trace, line *status.Line) (*Pages, error) {
	if !out.Regular() {
		return nil, &output.NoDirectoryError{Files: PageFlags, Path: out.Path()}
	}
	p := &Pages{pid: pid, out: out, line: line}
	return p, p.open()
}

func (p *Pages) open() (err error) {
	if p.process, err = pageflags.Open(p.pid); err != nil {
		p.process = nil
		return &PagesError{err}
	}
	return nil
}

// Close releases the process.
func (p *Pages) Close() {
	if p.process != nil {
		p.process.Close()
		p.process = nil
	}
}

// Before writes the pages before the record that ends the trace, and passes the names of
// their files to put.
func (p *Pages) Before(rec *trace.Record, put func(*trace.Record) error) error {
	switch {
	case p.process == nil:
		return nil
	case rec.Kind == trace.KindExec: // the process has other memory now
		p.Close()
		if err := p.open(); err != nil {
			p.line.Print("process %d: its pages are not recorded: %v", p.pid, err)
		}
		return nil
	case !last(rec):
		return nil
	}
	process := p.process
	p.process = nil
	defer process.Close()
	files, err := p.create()
	left := 0
	if err == nil {
		left, err = process.Write(files[0], files[1], p.out.Room())
	}
	if errors.Is(err, pageflags.ErrGone) {
		p.line.Print("process %d: its pages are not recorded: %v", p.pid, pageflags.ErrGone)
		return errors.Join(files[0].Discard(), files[1].Discard())
	}
	for i, f := range files {
		a := p.out.Attach(PageFiles[i], f)
		if err == nil {
			err = put(&trace.Record{Kind: trace.KindAttachment, Time: rec.Time, PID: int32(p.pid), Attachment: a})
		}
	}
	if left > 0 {
		p.line.Print("process %d: the pages of %d mappings are not recorded: there is no room for them", p.pid, left)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", PageFlags, err)
	}
	return nil
}

// create creates the files of the attachments.
func (p *Pages) create() (files []*outfile.File, err error) {
	for _, name := range PageFiles {
		f, e := p.out.NewFile("pagemap-" + name)
		if e != nil {
			for _, f := range files {
				e = errors.Join(e, f.Discard())
			}
			return nil, e
		}
		files = append(files, f)
	}
	return files, nil
}
