package symbol

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"rtrace-bpf/trace"
)

// maxRatio is the largest accepted ratio of a section's unpacked size to its size in the
// file. What compilers write reaches about ten.
const maxRatio = 100

// contents returns the bytes of a section, unpacked. More than limit bytes are an error.
func (s *section) contents(limit uint64, what string) ([]byte, error) {
	data, err := s.read(limit, what)
	if err != nil || s.flags&elf.SHF_COMPRESSED == 0 {
		return data, err
	}
	size := 12 // sizeof(Elf32_Chdr)
	if s.img.wide {
		size = 24 // sizeof(Elf64_Chdr)
	}
	if len(data) < size {
		return nil, fail(s.offset, trace.ErrTruncated, what)
	}
	c := s.img.cursor(data)
	method := elf.CompressionType(c.u32())
	if s.img.wide {
		c.u32() // reserved
	}
	length := c.word()
	if length > limit || length/maxRatio > s.size {
		return nil, fail(s.offset, trace.ErrLimit, what)
	}
	out, err := unpack(method, data[size:], length)
	if err != nil {
		return nil, fail(s.offset, err, what)
	}
	return out, nil
}

// unpack unpacks exactly length bytes.
func unpack(method elf.CompressionType, packed []byte, length uint64) ([]byte, error) {
	var r io.Reader
	switch method {
	case elf.COMPRESS_ZLIB:
		z, err := zlib.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, errors.Join(trace.ErrMalformed, err)
		}
		r = z
	case elf.COMPRESS_ZSTD:
		z, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(1<<27))
		if err != nil {
			return nil, errors.Join(trace.ErrMalformed, err)
		}
		defer z.Close()
		r = z
	default:
		return nil, trace.ErrUnsupported
	}
	out := make([]byte, length)
	if _, err := io.ReadFull(r, out); err != nil {
		return nil, errors.Join(trace.ErrMalformed, err)
	}
	return out, nil
}

// debugContents returns the bytes of a section, unpacked. More than limit bytes are an
// error.
func (s *section) debugContents(limit uint64, what string) ([]byte, error) {
	data, err := s.contents(limit, what)
	const head = 12 // "ZLIB" and the length as a big-endian number
	if err != nil || s.img.named(what) == s || len(data) < head || string(data[:4]) != "ZLIB" {
		return data, err
	}
	length := binary.BigEndian.Uint64(data[4:])
	if length > limit || length/maxRatio > s.size {
		return nil, fail(s.offset, trace.ErrLimit, what)
	}
	out, err := unpack(elf.COMPRESS_ZLIB, data[head:], length)
	if err != nil {
		return nil, fail(s.offset, fmt.Errorf("unpack: %w", err), what)
	}
	return out, nil
}
