package cli_test

import (
	"os"
	"testing"

	"rtrace-bpf/internal/cli"
)

func TestIsTerminalOfPseudoTerminal(t *testing.T) {
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	if !cli.IsTerminal(f) {
		t.Error("a terminal is not seen as one")
	}
}
