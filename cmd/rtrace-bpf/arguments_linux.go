package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"rtrace-bpf/internal/cli"
)

// unexpected returns the error about an argument that belongs to no flag. It suggests what
// the user probably meant: a process, a verb, a command, processes by name, or reading a trace.
func unexpected(arg string) error {
	shown := cli.Word(arg)
	if n, err := strconv.ParseUint(arg, 10, 31); err == nil && n > 0 {
		return fmt.Errorf("%s: did you mean -p %s?", shown, arg)
	}
	if v, ok := findVerb(arg); ok {
		return fmt.Errorf("%s: the verb comes first: %s %s; to start a program with that name, write it after --", shown, name, v.name)
	}
	if _, err := exec.LookPath(arg); err == nil {
		text := "did you mean -- " + shown + ", to start it"
		if !strings.Contains(arg, "/") {
			text += ", or --comm " + shown + ", to trace the processes of that name"
		}
		return fmt.Errorf("%s: %s?", shown, text)
	}
	if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
		return fmt.Errorf("%s is a file; if it is a trace, read it with rtrace, as rtrace info %s", shown, shown)
	}
	if meant := cli.Nearest(arg, verbNames()); meant != "" {
		return fmt.Errorf("%s: did you mean %s %s?", shown, name, meant)
	}
	return fmt.Errorf("%s belongs to no flag; select a process with -p PID or --comm NAME, or write a command after --", shown)
}
