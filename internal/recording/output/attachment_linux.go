package output

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/outfile"
	"rtrace-bpf/trace"
)

// Attachments are the files of Options.Copies, in a [NoDirectoryError].
const Attachments = "attachments"

// Copy is a file that is copied to the directory of the trace and named in it.
type Copy struct {
	Name string // of the attachment
	Path string // of the original
}

// copyAll copies the files to the directory of the trace.
func (t *Trace) copyAll() error {
	if len(t.options.Copies) > 0 && !t.Regular() {
		return &NoDirectoryError{Files: Attachments, Path: t.Path()}
	}
	for _, c := range t.options.Copies {
		if err := t.copy(c); err != nil {
			return fmt.Errorf("attach %s: %w", c.Name, err)
		}
	}
	return nil
}

func (t *Trace) copy(c Copy) error {
	// O_NONBLOCK: opening must not wait, for example for the writer of a FIFO.
	from, err := os.OpenFile(c.Path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", c.Path)
	}
	to, err := t.NewFile(c.Name)
	if err != nil {
		return err
	}
	t.attachments = append(t.attachments, t.Attach(c.Name, to))
	_, err = io.Copy(to, from)
	return err
}

// NewFile creates a file in the directory of the trace, called PID-NAME-N.
func (t *Trace) NewFile(name string) (*outfile.File, error) {
	return outfile.CreateNumbered(filepath.Dir(t.Path()), fmt.Sprintf("%d-%s", t.pid, name), "")
}

// Attach makes a file in the directory of the trace belong to it, and returns how the
// trace names it. The trace closes or removes the file.
func (t *Trace) Attach(name string, f *outfile.File) trace.Attachment {
	t.attached = append(t.attached, f)
	return trace.Attachment{Name: name, Path: filepath.Base(f.Path())}
}
