package main

import (
	"bytes"
	"fmt"
	"os"
)

// progress prints how things go. Machines run side by side, so each line is
// written at once and says of which machine it is.
type progress struct{ of string }

func (p progress) printf(format string, args ...any) {
	of := p.of
	if of != "" {
		of += ": "
	}
	fmt.Fprintf(os.Stderr, "vmtest: %s%s\n", of, fmt.Sprintf(format, args...))
}

// Write prints whole lines.
func (p progress) Write(text []byte) (int, error) {
	for line := range bytes.Lines(text) {
		p.printf("%s", bytes.TrimRight(line, "\n"))
	}
	return len(text), nil
}
