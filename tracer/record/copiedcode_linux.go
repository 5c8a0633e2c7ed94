package record

import "encoding/binary"

// codeWords reads the code of a process from the mapped files, as memory. The unwinder
// recognises the return from a signal handler by its instructions where no table
// describes it.
type codeWords struct{ *copies }

// codeWord is the word at an address of code; ok is false if it cannot be read.
type codeWord struct {
	value uint64
	ok    bool
}

// maxCodeWords limits the cached words: few addresses of code have no table.
const maxCodeWords = 1 << 14

// Word implements reference.Memory.
func (c codeWords) Word(addr uint64) (uint64, bool) {
	w, known := c.words[addr]
	if !known {
		w = c.read(addr)
		if len(c.words) >= maxCodeWords {
			clear(c.words)
		}
		c.words[addr] = w
	}
	return w.value, w.ok
}

func (c codeWords) read(addr uint64) codeWord {
	m := c.code.at(addr)
	if m == nil {
		return codeWord{}
	}
	f, err := c.open(*m)
	if err != nil || f == nil {
		return codeWord{}
	}
	defer f.Close()
	data, err := f.Code(addr-m.Bias(f.Segments()), 8)
	if err != nil || len(data) < 8 {
		return codeWord{}
	}
	return codeWord{binary.LittleEndian.Uint64(data), true}
}
