package sidefile

import (
	"encoding/json"
	"fmt"
)

// HeapInfo is what there is to know about a record of the state of the heap.
type HeapInfo struct {
	Time    int64    `json:"time"`              // when it was read, ns of the trace's clock
	Unknown []string `json:"unknown,omitempty"` // fields that are 0 since they are not known, as jsonl calls them
	Why     string   `json:"why,omitempty"`     // they are not
}

// heapInfoLine begins the line with a HeapInfo.
const heapInfoLine = `{"heapinfo":`

// HeapInfo adds what there is to know about the state of the heap. It is called once.
func (w *Writer) HeapInfo(h *HeapInfo) error {
	text, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("writing side file: %w", err)
	}
	w.chunk()
	w.out = append(append(append(w.out, heapInfoLine...), text...), "}\n"...)
	w.write()
	return w.err
}
