package jsontext

import "math/bits"

// texts keeps one copy of each recently read text, so that repeated names cost
// no memory. The zero value is ready.
type texts struct {
	slots [1 << textBits]string
}

const (
	textBits   = 12
	maxKeptLen = 256
)

func (t *texts) keep(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > maxKeptLen {
		return string(b)
	}
	h := uint64(len(b))
	for _, c := range b {
		h = bits.RotateLeft64(h^uint64(c), 13) * 0x9e3779b97f4a7c15
	}
	slot := &t.slots[h>>(64-textBits)]
	if *slot != string(b) {
		*slot = string(b)
	}
	return *slot
}
