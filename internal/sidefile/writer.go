package sidefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"rtrace-bpf/internal/atomicfile"
	"rtrace-bpf/internal/jsonrecord"
	"rtrace-bpf/internal/jsontext"
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
	quality   []byte
	err       error // sticky
	closed    bool

	from, pos uint64 // the chunk begins at from; pos is the next position
	records   []byte // lines of the chunk's records
	tids      runs
	stacks    runs
	sizes     []byte // "POSITION,SIZE," …
	tid       int32
	stack     quality
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
			w.call(r, uint64(n))
		}
	} else {
		if held(r.Kind) && (r.Kind != trace.KindResource || r.Resource.Sampled) { // every format represents all other resources
			w.record(r)
		}
		w.pos += uint64(max(w.positions(r), 0))
	}
	if len(w.records)+len(w.tids.text)+len(w.stacks.text)+len(w.sizes) >= chunkBytes {
		w.chunk()
	}
	return w.err
}

func (w *Writer) call(r *trace.Record, n uint64) {
	if r.TID != w.tid {
		w.endTIDs()
		w.tid = r.TID
	}
	w.tids.n += n
	if q := qualityOf(&r.Call.Stack); q != w.stack && (q.end != trace.StackAbsent || w.stack.bare) {
		w.endStacks()
		w.stack = q
	}
	w.stacks.n += n
	w.pos += n
	if r.Call.Size >= bigSize {
		// The allocation is the last of the call's positions.
		w.sizes = strconv.AppendUint(w.sizes, w.pos-1, 10)
		w.sizes = append(w.sizes, ',')
		w.sizes = strconv.AppendUint(w.sizes, r.Call.Size, 10)
		w.sizes = append(w.sizes, ',')
	}
}

func (w *Writer) record(r *trace.Record) {
	line, err := jsonrecord.Append(w.line[:0], r)
	if err != nil {
		w.err = err
		return
	}
	w.line = line
	w.records = append(w.records, `{"at":`...)
	w.records = strconv.AppendUint(w.records, w.pos, 10)
	w.records = append(w.records, ',')
	w.records = append(w.records, line[1:]...)
	w.records = append(w.records, '\n')
}

// runs is a list "VALUE,COUNT,VALUE,COUNT," and the count of the current run.
type runs struct {
	text []byte
	n    uint64
}

func (r *runs) end() {
	r.text = append(r.text, ',')
	r.text = strconv.AppendUint(r.text, r.n, 10)
	r.text = append(r.text, ',')
	r.n = 0
}

func (w *Writer) endTIDs() {
	if w.tids.n > 0 {
		w.tids.text = strconv.AppendInt(w.tids.text, int64(w.tid), 10)
		w.tids.end()
	}
}

func (w *Writer) endStacks() {
	if w.stacks.n > 0 {
		w.quality = w.stack.appendText(w.quality[:0])
		w.stacks.text = jsontext.AppendString(w.stacks.text, string(w.quality))
		w.stacks.end()
	}
}

// chunk writes the data since the last chunk: the line for its calls and then
// its records.
func (w *Writer) chunk() {
	w.endTIDs()
	w.endStacks()
	if w.pos > w.from {
		w.out = append(w.out, `{"from":`...)
		w.out = strconv.AppendUint(w.out, w.from, 10)
		w.out = jsontext.AppendUint(w.out, "to", w.pos)
		w.list("tid", &w.tids.text)
		w.list("stack", &w.stacks.text)
		w.list("size", &w.sizes)
		w.out = append(w.out, "}\n"...)
		w.from = w.pos
	}
	w.out = append(w.out, w.records...)
	w.records = w.records[:0]
	w.write()
}

// list writes and clears a list that ends with a comma.
func (w *Writer) list(key string, text *[]byte) {
	if n := len(*text); n > 0 {
		w.out = jsontext.AppendKey(w.out, key)
		w.out = append(w.out, '[')
		w.out = append(w.out, (*text)[:n-1]...)
		w.out = append(w.out, ']')
		*text = (*text)[:0]
	}
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
