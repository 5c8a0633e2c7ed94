package sidefile

import (
	"encoding/json"
	"fmt"
	"strings"
)

// HeapInfo is what there is to know about a record of the state of the heap.
type HeapInfo struct {
	Time    int64    `json:"time"`              // when it was read, ns of the trace's clock
	Unknown []string `json:"unknown,omitempty"` // fields that are 0 since they are not known, as jsonl calls them
	Why     string   `json:"why,omitempty"`     // they are not
}

// commentHead begins the comment in a trace that says the same.
const commentHead = "of the state of the heap these are not known: "

// Comment is what a trace has as a comment if some fields are not known.
func (h *HeapInfo) Comment() string {
	return fmt.Sprintf("%s%s: %s", commentHead, strings.Join(h.Unknown, ", "), h.Why)
}

// ParseComment reads what Comment returns. It returns false for other comments.
func ParseComment(text string) (h HeapInfo, ok bool) {
	text, ok = strings.CutPrefix(text, commentHead)
	if !ok {
		return h, false
	}
	fields, why, ok := strings.Cut(text, ": ")
	return HeapInfo{Unknown: strings.Split(fields, ", "), Why: why}, ok
}

// parseHeapInfo reads the line with a HeapInfo.
func parseHeapInfo(line []byte) (*HeapInfo, error) {
	var found struct{ HeapInfo HeapInfo }
	if err := json.Unmarshal(line, &found); err != nil {
		return nil, fmt.Errorf("what it says of the heap: %w", err)
	}
	return &found.HeapInfo, nil
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
