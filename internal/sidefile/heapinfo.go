package sidefile

import (
	"encoding/json"
	"fmt"
	"strings"
)

// HeapInfo holds further facts about a record of the state of the heap.
type HeapInfo struct {
	Time    int64    `json:"time"`              // when the state was read, in ns of the trace's clock
	Unknown []string `json:"unknown,omitempty"` // fields that are 0 because they are unknown, with their names in jsonl
	Why     string   `json:"why,omitempty"`     // reason why they are unknown
}

// commentHead is the beginning of a comment in a trace with the same facts.
const commentHead = "of the state of the heap these are not known: "

// Comment returns the comment for a trace if some fields are unknown.
func (h *HeapInfo) Comment() string {
	return fmt.Sprintf("%s%s: %s", commentHead, strings.Join(h.Unknown, ", "), h.Why)
}

// ParseComment parses a comment from Comment. It returns false for other
// comments.
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
		return nil, fmt.Errorf("facts about the heap: %w", err)
	}
	return &found.HeapInfo, nil
}

// heapInfoLine is the beginning of the line with a HeapInfo.
const heapInfoLine = `{"heapinfo":`

// HeapInfo adds the facts about the state of the heap. Call it once.
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
