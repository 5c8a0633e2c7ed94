package proc

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Limits of what is read from another process's memory, which may contain anything.
const (
	maxDynamic = 1 << 12 // entries of a dynamic segment
	maxLinks   = 1 << 12 // libraries
)

// Link is an entry of the dynamic loader's list of loaded files (struct link_map).
type Link struct {
	Bias    uint64 // load bias of the file
	Dynamic uint64 // address of the file's dynamic segment in memory
}

// Links returns the list of the dynamic loader in its order: the program, preloaded libraries,
// needed libraries, breadth first, and libraries that were opened later. Symbols are looked up
// in this order.
//
// memory is the memory of the process, word the size of its pointers in bytes. The list is
// found through DT_DEBUG in the program's dynamic segment, which has size bytes at address
// dynamic. The error wraps ErrSyntax if the loader has not filled in DT_DEBUG, or if it does
// not lead to a valid list. Links that were read before the error are returned as well.
func Links(memory io.ReaderAt, word int, dynamic, size uint64) ([]Link, error) {
	r := links{memory: memory, word: word}
	debug, err := r.debug(dynamic, size)
	if err != nil {
		return nil, err
	}
	// struct r_debug: a number, then the first entry, each in a word.
	head, err := r.words(debug, 2)
	if err != nil {
		return nil, err
	}
	if version := uint32(head[0]); version == 0 {
		return nil, fmt.Errorf("dynamic loader's list at %#x: %w", debug, ErrSyntax)
	}
	return r.list(head[1])
}

type links struct {
	memory io.ReaderAt
	word   int
}

// debug returns the value of DT_DEBUG.
func (r *links) debug(dynamic, size uint64) (uint64, error) {
	for i := range min(size/uint64(2*r.word), maxDynamic) {
		entry, err := r.words(dynamic+i*uint64(2*r.word), 2)
		if err != nil {
			return 0, err
		}
		tag, value := elf.DynTag(entry[0]), entry[1]
		if tag == elf.DT_DEBUG && value != 0 {
			return value, nil
		}
		if tag == elf.DT_NULL {
			break
		}
	}
	return 0, fmt.Errorf("dynamic segment at %#x leads to no list of libraries: %w", dynamic, ErrSyntax)
}

// list follows the list from its first entry.
func (r *links) list(addr uint64) ([]Link, error) {
	var all []Link
	seen := map[uint64]bool{}
	for addr != 0 {
		if seen[addr] || len(all) == maxLinks {
			return all, fmt.Errorf("dynamic loader's list has no end: %w", ErrSyntax)
		}
		seen[addr] = true
		// struct link_map: bias, name, dynamic segment, next.
		entry, err := r.words(addr, 4)
		if err != nil {
			return all, err
		}
		all = append(all, Link{Bias: entry[0], Dynamic: entry[2]})
		addr = entry[3]
	}
	return all, nil
}

// words reads n pointers of the process.
func (r *links) words(addr uint64, n int) ([]uint64, error) {
	b := make([]byte, n*r.word)
	if addr > math.MaxInt64 {
		return nil, fmt.Errorf("no memory at %#x: %w", addr, ErrSyntax)
	}
	if _, err := r.memory.ReadAt(b, int64(addr)); err != nil {
		return nil, fmt.Errorf("read memory at %#x: %w", addr, err)
	}
	all := make([]uint64, n)
	for i := range all {
		if r.word == 4 {
			all[i] = uint64(binary.LittleEndian.Uint32(b[4*i:]))
		} else {
			all[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
	}
	return all, nil
}
