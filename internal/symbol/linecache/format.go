package linecache

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/symbol/lines"
)

// A file consists of the magic bytes, the SHA-256 of what follows, and then numbers as
// LEB128 and texts, each preceded by its length:
//
//	key
//	files:   count, each: name, size + 1 (0: there is none), time of the last change
//	texts:   count, each text
//	frames:  count, each: function, namespace, file (numbers of texts), line, inlined
//	answers: count, each: address less the one before, count, numbers of frames
const magic = "rtrln\x00\x00\x01" // the last byte is the version

// maxList bounds the frames of one address; there are 256 at most.
const maxList = 1 << 9

// errFormat reports that a file is not a file of the symbol cache, or is damaged.
var errFormat = errors.New("not a file of the symbol cache, or damaged")

// encode returns the contents of the file.
func (e *Entry) encode() []byte {
	texts := make(map[string]uint64)
	var list []string
	number := func(s string) uint64 {
		n, ok := texts[s]
		if !ok {
			n = uint64(len(list))
			list = append(list, s)
			texts[s] = n
		}
		return n
	}
	var frames []byte
	for i := range e.frames {
		f := &e.frames[i]
		inlined := uint64(0)
		if f.Inlined {
			inlined = 1
		}
		for _, n := range [...]uint64{number(f.Function), number(f.Namespace), number(f.File), uint64(f.Line), inlined} {
			frames = binary.AppendUvarint(frames, n)
		}
	}
	body := appendText(nil, e.key)
	body = binary.AppendUvarint(body, uint64(len(e.consulted)))
	for _, c := range e.consulted {
		body = appendText(body, c.Name)
		body = binary.AppendUvarint(body, uint64(c.Size+1))
		body = binary.AppendUvarint(body, uint64(c.Changed))
	}
	body = binary.AppendUvarint(body, uint64(len(list)))
	for _, s := range list {
		body = appendText(body, s)
	}
	body = binary.AppendUvarint(body, uint64(len(e.frames)))
	body = append(body, frames...)
	body = binary.AppendUvarint(body, uint64(len(e.lists)))
	last := uint64(0)
	for _, addr := range slices.Sorted(maps.Keys(e.lists)) {
		body = binary.AppendUvarint(body, addr-last)
		last = addr
		body = binary.AppendUvarint(body, uint64(len(e.lists[addr])))
		for _, n := range e.lists[addr] {
			body = binary.AppendUvarint(body, uint64(n))
		}
	}
	sum := sha256.Sum256(body)
	return slices.Concat([]byte(magic), sum[:], body)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decode adds the contents of a file to the entry.
func (e *Entry) decode(data []byte) error {
	const head = len(magic) + sha256.Size
	if len(data) < head || string(data[:len(magic)]) != magic {
		return errFormat
	}
	if sum := sha256.Sum256(data[head:]); string(sum[:]) != string(data[len(magic):head]) {
		return errFormat
	}
	r := &reader{data: data[head:]}
	if r.text() != e.key {
		return errFormat
	}
	for range r.count() {
		c := symbol.Consulted{Name: r.text(), Size: int64(r.number()) - 1, Changed: int64(r.number())}
		e.consulted = append(e.consulted, c)
	}
	texts := make([]string, r.count())
	for i := range texts {
		texts[i] = r.text()
	}
	pick := func() string {
		n := r.number()
		if n >= uint64(len(texts)) {
			r.bad = true
			return ""
		}
		return texts[n]
	}
	for range r.count() {
		f := lines.Frame{Function: pick(), Namespace: pick(), File: pick(), Line: int(r.number()), Inlined: r.number() != 0}
		e.numbers[f] = uint32(len(e.frames))
		e.frames = append(e.frames, f)
	}
	addr := uint64(0)
	for range min(r.count(), maxLists) {
		addr += r.number()
		list := make([]uint32, min(r.count(), maxList))
		for i := range list {
			n := r.number()
			if n >= uint64(len(e.frames)) {
				r.bad = true
				break
			}
			list[i] = uint32(n)
		}
		e.lists[addr] = list
	}
	if r.bad || len(r.data) > 0 {
		return errFormat
	}
	return nil
}

// reader reads numbers and texts from a file. After the first read beyond the end, every
// read returns zero or nothing.
type reader struct {
	data []byte
	bad  bool
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.bad, r.data = true, nil
		return 0
	}
	r.data = r.data[n:]
	return v
}

// count reads the number of elements that follow, each of which takes at least one byte.
func (r *reader) count() int {
	n := r.number()
	if n > uint64(len(r.data)) {
		r.bad, r.data = true, nil
		return 0
	}
	return int(n)
}

func (r *reader) text() string {
	n := r.count()
	s := string(r.data[:n])
	r.data = r.data[n:]
	return s
}
