package decoder

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"rtrace-bpf/decoder/swap"
	"rtrace-bpf/trace"
)

const (
	// headSize is how many bytes of the input are used to recognise a format.
	headSize = 4096
	// maxWindow bounds the memory of the zstd decoder. It is what --ultra -22 and
	// --long=27 need.
	maxWindow = 128 << 20
)

// Input is a trace without its compression.
type Input struct {
	Compression []string // outermost first: "gzip", "zstd"

	head   []byte
	r      io.Reader
	read   int64 // bytes that Read has returned
	layers []*layer
	close  []func() error
}

// NewInput detects the compression of r and removes it: gzip and zstd, each at most
// once.
func NewInput(r io.Reader) (*Input, error) {
	in := &Input{r: r}
	if err := in.peek(); err != nil {
		return nil, err
	}
	done := map[string]bool{}
	for {
		name, open := compression(in.head)
		if open == nil || done[name] {
			return in, nil
		}
		done[name] = true
		l := &layer{name: name, src: source{r: in.r}}
		in.layers = append(in.layers, l)
		in.Compression = append(in.Compression, name)
		stop, err := open(l)
		if err != nil {
			return nil, errors.Join(l.failed(err), in.Close())
		}
		in.close = append(in.close, stop)
		in.r = l
		if err := in.peek(); err != nil {
			return nil, errors.Join(err, in.Close())
		}
	}
}

// peek fills head with the next bytes of r. It reads no more than recognising a format
// needs, because r may be a pipe that has little to read yet.
func (in *Input) peek() error {
	head := make([]byte, headSize)
	n, idle := 0, 0
	for n < len(head) && !telling(head[:n]) {
		m, err := in.r.Read(head[n:])
		n += m
		if idle++; m > 0 {
			idle = 0
		} else if err == nil && idle == 100 {
			return io.ErrNoProgress
		}
		if errors.Is(err, io.EOF) {
			in.r = eof{}
			break
		}
		if err != nil {
			return err
		}
	}
	in.head = head[:n:n]
	in.r = io.MultiReader(bytes.NewReader(in.head), in.r)
	return nil
}

// mtrcMagic begins a binary format whose first bytes could be text.
const mtrcMagic = "MTRC"

// telling reports whether head is enough to recognise a format: it is binary, or has a
// whole line.
func telling(head []byte) bool {
	if len(head) < 4 {
		return false
	}
	if bytes.HasPrefix(head, []byte(mtrcMagic)) {
		return true
	}
	if swap.MayBe(head) {
		return len(head) >= swap.HeadSize
	}
	if bytes.HasPrefix(head, []byte("Nett")) {
		return len(head) >= 8 // text may begin like this
	}
	for _, c := range head[:4] {
		if c >= 0x80 || c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			return true
		}
	}
	return bytes.IndexByte(head, '\n') > 0
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// Read implements io.Reader. A compressed stream that is cut ends with io.EOF; Format
// and Err report the error.
func (in *Input) Read(b []byte) (int, error) {
	n, err := in.r.Read(b)
	in.read += int64(n)
	return n, err
}

// Close releases the decompressors.
func (in *Input) Close() error {
	var all []error
	for _, c := range in.close {
		all = append(all, c())
	}
	in.close = nil
	return errors.Join(all...)
}

// Format returns the name of the format, or an error that wraps ErrUnknown.
func (in *Input) Format() (string, error) {
	f, err := in.format()
	if err != nil {
		return "", err
	}
	return f.name, nil
}

func (in *Input) format() (*format, error) {
	if len(in.head) > 0 {
		for i := range formats {
			if formats[i].match(in.head) {
				return &formats[i], nil
			}
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return nil, unknown(in.head)
}

// Err returns a *trace.SyntaxError if the compressed data read so far is damaged or
// cut, else nil.
func (in *Input) Err() error {
	for _, l := range in.layers {
		if l.err != nil {
			return l.err
		}
	}
	return nil
}

// explain replaces a decoder's error at or before the end of the input with the error
// of the compression, if there is one.
func (in *Input) explain(err error) error {
	if cause := in.Err(); cause != nil && (errors.Is(err, io.EOF) || errors.Is(err, trace.ErrTruncated)) {
		return cause
	}
	return err
}

// layer is one decompressor.
type layer struct {
	name string
	src  source
	r    io.Reader
	read int64
	err  error // error in the compressed data
}

// source remembers errors of the compressed input.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func compression(head []byte) (name string, open func(*layer) (func() error, error)) {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return "gzip", openGzip
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}),
		len(head) >= 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:4], []byte{0x2a, 0x4d, 0x18}):
		return "zstd", openZstd // the second is a skippable frame
	}
	return "", nil
}

func openGzip(l *layer) (func() error, error) {
	z, err := gzip.NewReader(&l.src)
	if err != nil {
		return nil, err
	}
	l.r = z
	return func() error { _ = z.Close(); return nil }, nil // Close returns the last error of Read
}

func openZstd(l *layer) (func() error, error) {
	z, err := zstd.NewReader(&l.src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	l.r = z
	return func() error { z.Close(); return nil }, nil
}

// Read implements io.Reader. Damaged data ends with io.EOF; l.err holds the error.
func (l *layer) Read(b []byte) (int, error) {
	if l.err != nil {
		return 0, io.EOF
	}
	n, err := l.r.Read(b)
	l.read += int64(n)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	if err = l.failed(err); l.err == nil {
		return n, err
	}
	return n, io.EOF
}

// failed remembers and returns an error in the compressed data. It returns errors of
// the input itself unchanged.
func (l *layer) failed(err error) error {
	if l.src.err != nil {
		return l.src.err
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		err = trace.ErrTruncated
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		err = fmt.Errorf("%w: %w", trace.ErrLimit, err)
	default:
		err = fmt.Errorf("%w: %w", trace.ErrMalformed, err)
	}
	l.err = &trace.SyntaxError{Format: l.name, Offset: l.read, Err: err}
	return l.err
}
