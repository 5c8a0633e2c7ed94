package record

import "encoding/binary"

// codeWords is the code of a process as memory, from the files that are mapped. What a
// signal handler returns to is known by its instructions where no table has it.
type codeWords struct{ *copies }

// codeWord is what is at an address of code; not ok if that cannot be told.
type codeWord struct {
	value uint64
	ok    bool
}

// maxCodeWords bounds what is kept: few addresses of code have no table.
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
