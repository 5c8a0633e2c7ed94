// Package xz decompresses xz data as used in ELF files: blocks of LZMA2 without
// other filters, with all checksums. The layout is that of "The .xz File
// Format" 1.2.
//
// Input may be hostile: memory is bounded by the given limit and a constant,
// and malformed input results in one of the errors below.
package xz

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"hash/crc64"
)

// Errors in compressed data.
var (
	ErrMalformed   = errors.New("xz: malformed")
	ErrTruncated   = errors.New("xz: truncated")
	ErrUnsupported = errors.New("xz: unknown filter or check")
	ErrLimit       = errors.New("xz: decompressed data exceeds the limit")
	ErrChecksum    = errors.New("xz: wrong checksum")
)

// The checks of a block, and their lengths in bytes.
const (
	checkNone   = 0
	checkCRC32  = 1
	checkCRC64  = 4
	checkSHA256 = 10
)

const (
	headerSize  = 12   // length of a stream header
	filterLZMA2 = 0x21 // id
)

var magic = []byte{0xfd, '7', 'z', 'X', 'Z', 0}

var ecma = crc64.MakeTable(crc64.ECMA)

// Unpack returns the decompressed data of the first stream, at most limit
// bytes. It does not read the index after the blocks.
func Unpack(packed []byte, limit int) ([]byte, error) {
	if len(packed) < headerSize {
		return nil, ErrTruncated
	}
	if !bytes.Equal(packed[:len(magic)], magic) {
		return nil, ErrMalformed
	}
	flags := packed[6:8]
	if crc32.ChecksumIEEE(flags) != binary.LittleEndian.Uint32(packed[8:]) {
		return nil, ErrChecksum
	}
	size, ok := map[byte]int{checkNone: 0, checkCRC32: 4, checkCRC64: 8, checkSHA256: 32}[flags[1]]
	if flags[0] != 0 || !ok {
		return nil, ErrUnsupported
	}
	var out []byte
	at := headerSize
	for {
		if at >= len(packed) {
			return nil, ErrTruncated
		}
		if packed[at] == 0 { // the index
			return out, nil
		}
		head, err := blockHeader(packed[at:])
		if err != nil {
			return nil, err
		}
		at += head
		start := len(out)
		d := decoder{out: out, limit: limit}
		n, err := d.lzma2(packed[at:])
		if err != nil {
			return nil, err
		}
		out = d.out
		at += (n + 3) &^ 3
		if size > len(packed)-at {
			return nil, ErrTruncated
		}
		if !checked(flags[1], out[start:], packed[at:at+size]) {
			return nil, ErrChecksum
		}
		at += size
	}
}

// checked reports whether data has the given checksum.
func checked(kind byte, data, sum []byte) bool {
	switch kind {
	case checkCRC32:
		return crc32.ChecksumIEEE(data) == binary.LittleEndian.Uint32(sum)
	case checkCRC64:
		return crc64.Checksum(data, ecma) == binary.LittleEndian.Uint64(sum)
	case checkSHA256:
		got := sha256.Sum256(data)
		return bytes.Equal(got[:], sum)
	}
	return true
}

// blockHeader returns the length of the header of a block whose only filter is
// LZMA2. It ignores the optional sizes.
func blockHeader(b []byte) (int, error) {
	size := (int(b[0]) + 1) * 4
	if size > len(b) {
		return 0, ErrTruncated
	}
	const sumSize = 4
	body := b[:size-sumSize]
	if crc32.ChecksumIEEE(body) != binary.LittleEndian.Uint32(b[size-sumSize:]) {
		return 0, ErrChecksum
	}
	flags := body[1]
	const (
		filters   = 3 // number of filters, less one
		reserved  = 0x3c
		hasPacked = 0x40
		hasSize   = 0x80
	)
	if flags&(filters|reserved) != 0 {
		return 0, ErrUnsupported
	}
	rest := body[2:]
	for _, bit := range [...]byte{hasPacked, hasSize} {
		if flags&bit != 0 {
			_, n := binary.Uvarint(rest)
			if n <= 0 {
				return 0, ErrMalformed
			}
			rest = rest[n:]
		}
	}
	// A filter ID, the length of the properties, and the properties: the size
	// of the dictionary, which is not needed because the dictionary is the
	// whole output.
	if len(rest) < 3 {
		return 0, ErrMalformed
	}
	if rest[0] != filterLZMA2 || rest[1] != 1 {
		return 0, ErrUnsupported
	}
	return size, nil
}
