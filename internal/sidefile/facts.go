package sidefile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// factFormats lists the formats whose streams lack facts that their readers
// need. A line of the side file contains them. Only the package of the format
// interprets them.
var factFormats = []string{"swap"}

// factsPrefix returns how the line with the facts about a format begins.
func factsPrefix(format string) []byte { return []byte(`{"` + format + `":`) }

var factsPrefixes = func() (all [][]byte) {
	for _, format := range factFormats {
		all = append(all, factsPrefix(format))
	}
	return all
}()

// isFacts reports whether the line holds the facts about a format.
func isFacts(line []byte) bool {
	for _, prefix := range factsPrefixes {
		if bytes.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

// Facts adds the facts that a reader of the format needs in addition to the
// trace, encoded as JSON. Call it once, at the end, when they are complete.
func (w *Writer) Facts(format string, facts any) error {
	text, err := json.Marshal(facts)
	if err != nil {
		return fmt.Errorf("writing side file: %w", err)
	}
	w.chunk()
	w.out = append(append(append(w.out, factsPrefix(format)...), text...), "}\n"...)
	w.write()
	return w.err
}

// ReadFacts returns the facts about the format in the side file r, as JSON, or
// nil if there are none.
func ReadFacts(r io.Reader, format string) ([]byte, error) {
	prefix := factsPrefix(format)
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, chunkBytes), maxLine)
	for lines.Scan() {
		if !bytes.HasPrefix(lines.Bytes(), prefix) {
			continue
		}
		var found map[string]json.RawMessage
		if err := json.Unmarshal(lines.Bytes(), &found); err != nil {
			return nil, fmt.Errorf("facts about %s: %w", format, err)
		}
		return found[format], nil
	}
	if err := lines.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) {
		return nil, err
	}
	return nil, nil
}
