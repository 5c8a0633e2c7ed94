package tracer

import (
	"bytes"
	"fmt"
	"os"
)

// Bounds on a text whose length is looked for in the memory of a process.
const (
	textPiece = 4 << 10
	maxLength = 64 << 20
)

// textLength returns the number of characters, of so many bytes each, of the text that is
// at an address of the process now.
func (t *target) textLength(addr uint64, unit int) (uint64, bool) {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", t.pid))
	if err != nil {
		return 0, false
	}
	defer memory.Close()
	piece, zero := make([]byte, textPiece), make([]byte, unit)
	for length := uint64(0); length < maxLength; {
		// Pages are read one by one: the one behind the text may not be there.
		n := textPiece - int((addr+length)%textPiece)
		n, err := memory.ReadAt(piece[:n], int64(addr+length))
		for at := 0; at+unit <= n; at += unit {
			if bytes.Equal(piece[at:at+unit], zero) {
				return (length + uint64(at)) / uint64(unit), true
			}
		}
		if n -= n % unit; err != nil || n == 0 {
			return 0, false
		}
		length += uint64(n)
	}
	return 0, false
}
