package sidefile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Swap is what SWAP's readers must know from outside: what replies on the control
// channel tell a host.
type Swap struct {
	Version string   `json:"version,omitempty"` // of the protocol
	Start   int64    `json:"start,omitempty"`   // when tracing began, ns since 1970
	CPUs    int      `json:"cpus,omitempty"`    // elements of SYSTEM's lists per processor; 0 unknown
	Devices []string `json:"devices,omitempty"` // names, one for each element of its lists per device
	// APIs names the functions of probe messages by their numbers.
	APIs map[uint32]string `json:"apis,omitempty"`
	// Syscalls names the system calls by what their messages have as pc.
	Syscalls map[uint64]string `json:"syscalls,omitempty"`
	// Functions names functions by what their messages have as pc.
	Functions map[uint64]string `json:"functions,omitempty"`
}

// swapLine begins the line with a Swap.
const swapLine = `{"swap":`

// Swap adds what there is to know about a SWAP stream. It is called once, at the
// end, when all functions are known.
func (w *Writer) Swap(s *Swap) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("writing side file: %w", err)
	}
	w.chunk()
	w.out = append(append(append(w.out, swapLine...), text...), "}\n"...)
	w.write()
	return w.err
}

// ReadSwap looks for a Swap in a side file. It returns false if there is none.
func ReadSwap(r io.Reader) (s Swap, ok bool, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, chunkBytes), maxLine)
	for lines.Scan() {
		line := lines.Bytes()
		if !bytes.HasPrefix(line, []byte(swapLine)) {
			continue
		}
		var found struct{ Swap Swap }
		if err := json.Unmarshal(line, &found); err != nil {
			return Swap{}, false, fmt.Errorf("what it says of swap: %w", err)
		}
		return found.Swap, true, nil
	}
	if err := lines.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) {
		return Swap{}, false, err
	}
	return Swap{}, false, nil
}
