package main

import (
	"bytes"
	"fmt"
	"os"
)

// progress prints progress messages. Several machines may run at the same time, so each line is
// written at once and names its machine.
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
