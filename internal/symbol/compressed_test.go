package symbol

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/klauspost/compress/zstd"

	"rtrace-bpf/trace"
)

// packed returns a compressed section whose header gives length as the unpacked size.
func packed(method elf.CompressionType, length uint64, body []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(method))
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, length)
	return append(binary.LittleEndian.AppendUint64(b, 1), body...)
}

func deflate(data []byte) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

func TestCompressed(t *testing.T) {
	text := bytes.Repeat([]byte("frame"), 20)
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	const zlibType, zstdType = elf.COMPRESS_ZLIB, elf.COMPRESS_ZSTD
	tests := []struct {
		name string
		data []byte
		want error
	}{
		{"zlib", packed(zlibType, 100, deflate(text)), nil},
		{"zstd", packed(zstdType, 100, encoder.EncodeAll(text, nil)), nil},
		{"no header", make([]byte, 23), trace.ErrTruncated},
		{"another method", packed(9, 100, text), trace.ErrUnsupported},
		{"no zlib", packed(zlibType, 100, text), trace.ErrMalformed},
		{"no zstd", packed(zstdType, 100, text), trace.ErrMalformed},
		{"cut", packed(zlibType, 100, deflate(text)[:6]), trace.ErrMalformed},
		{"shorter", packed(zlibType, 101, deflate(text)), trace.ErrMalformed},
		{"a bomb", packed(zlibType, 1<<20, deflate(zeros)), trace.ErrLimit},
		{"over the limit", packed(zlibType, 1<<21, make([]byte, 1<<20)), trace.ErrLimit},
		{"huge", packed(zlibType, ^uint64(0), deflate(text)), trace.ErrLimit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			img := &image{r: bytes.NewReader(tt.data), size: uint64(len(tt.data)), order: binary.LittleEndian, wide: true}
			s := &section{img: img, typ: elf.SHT_PROGBITS, flags: elf.SHF_COMPRESSED, size: uint64(len(tt.data))}
			got, err := s.contents(1<<20, "section")
			if !errors.Is(err, tt.want) || tt.want == nil && !bytes.Equal(got, text) {
				t.Errorf("%q, %v, want error %v", got, err, tt.want)
			}
			if _, ok := errors.AsType[*trace.SyntaxError](err); err != nil && !ok {
				t.Errorf("%v is no *trace.SyntaxError", err)
			}
		})
	}
}
