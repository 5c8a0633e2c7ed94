package sidefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"rtrace-bpf/internal/atomicfile"
	"rtrace-bpf/internal/jsonrecord"
	"rtrace-bpf/internal/safefile"
	"rtrace-bpf/trace"
)

// Writer takes the same records as the encoder of the trace and stores what the
// encoder cannot represent. It holds at most a few hundred kilobytes: its data
// go to a temporary file in the folder of the output, which gets its name when
// it is complete.
type Writer struct {
	positions func(*trace.Record) int
	file      *atomicfile.File
	written   int64
	out       []byte
	line      []byte
	calls     calls
	records   []byte // lines of the chunk's records
	err       error  // sticky
	closed    bool
}

var _ trace.Writer = (*Writer)(nil)

// NewWriter begins a side file at path. positions returns the number of
// positions of a record in the trace (see encoder.Positions). An earlier side
// file at path will be replaced; any other file there is an error.
func NewWriter(path string, positions func(*trace.Record) int) (*Writer, error) {
	err := checkReplaceable(path)
	if err != nil {
		return nil, fmt.Errorf("creating side file: %w", err)
	}
	w := &Writer{positions: positions}
	if w.file, err = atomicfile.CreatePrivate(path); err != nil {
		return nil, fmt.Errorf("creating side file: %w", err)
	}
	w.out = append(w.out, `{"format":"`+formatName+`","version":`...)
	w.out = strconv.AppendInt(w.out, version, 10)
	w.out = append(w.out, "}\n"...)
	return w, nil
}

// checkReplaceable returns an error if there is a regular file at path that is
// not a side file.
func checkReplaceable(path string) error {
	dir, name, err := safefile.Folder(path)
	if err != nil {
		return nil // it cannot be created either
	}
	defer dir.Close()
	info, err := dir.Lstat(name)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if to, err := os.Stat(path); err != nil || to.Mode().IsRegular() {
			return fmt.Errorf("%s: %w and is a symbolic link", path, fs.ErrExist)
		}
	}
	if err != nil || !info.Mode().IsRegular() {
		return nil // it does not exist, or is not readable
	}
	f, err := safefile.Read(dir, name)
	if err != nil {
		return err
	}
	defer f.Close() // only read
	if !Is(f) {
		return fmt.Errorf("%s: %w and is no side file", path, fs.ErrExist)
	}
	return nil
}

// WriteRecord stores the parts of r that the format of the trace cannot
// represent.
func (w *Writer) WriteRecord(r *trace.Record) error {
	if w.err != nil {
		return w.err
	}
	if r.Kind == trace.KindCall {
		if n := w.positions(r); n > 0 {
			w.calls.add(r, uint64(n))
		}
	} else {
		if held(r.Kind) && (r.Kind != trace.KindResource || r.Resource.Sampled) { // every format represents all other resources
			w.record(r)
		}
		w.calls.pos += uint64(max(w.positions(r), 0))
	}
	if len(w.records)+w.calls.size() >= chunkBytes {
		w.chunk()
	}
	return w.err
}

func (w *Writer) record(r *trace.Record) {
	line, err := jsonrecord.Append(w.line[:0], r)
	if err != nil {
		w.err = err
		return
	}
	w.line = line
	w.records = append(w.records, `{"at":`...)
	w.records = strconv.AppendUint(w.records, w.calls.pos, 10)
	w.records = append(w.records, ',')
	w.records = append(w.records, line[1:]...)
	w.records = append(w.records, '\n')
}

// chunk writes the data since the last chunk: the line for its calls and then
// its records.
func (w *Writer) chunk() {
	w.out = w.calls.appendLine(w.out)
	w.out = append(w.out, w.records...)
	w.records = w.records[:0]
	w.write()
}

func (w *Writer) write() {
	if w.err != nil {
		return
	}
	n, err := w.file.Write(w.out)
	if err != nil {
		w.err = fmt.Errorf("writing side file: %w", err)
	}
	w.written += int64(n)
	w.out = w.out[:0]
}

// Size returns the current size of the file in bytes. Up to a few hundred
// kilobytes more may be buffered.
func (w *Writer) Size() int64 { return w.written }

// Flush writes buffered data to the temporary file.
func (w *Writer) Flush() error {
	if w.err == nil {
		w.chunk()
	}
	return w.err
}

// Close completes the file and gives it its name. If anything failed since
// NewWriter, it removes the file and returns the first error.
func (w *Writer) Close() error {
	if w.closed {
		return nil
	}
	if err := w.Flush(); err != nil {
		return errors.Join(err, w.Discard())
	}
	w.closed = true
	if err := w.file.Commit(); err != nil {
		return fmt.Errorf("writing side file: %w", err)
	}
	return nil
}

// Discard removes the unfinished file. After Close it does nothing.
func (w *Writer) Discard() error {
	if w.closed {
		return nil
	}
	w.closed = true
	if w.err == nil {
		w.err = errors.New("side file was discarded")
	}
	return w.file.Discard()
}
