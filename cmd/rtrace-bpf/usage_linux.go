package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/encoder/nettrace"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/linux/selection"
	"rtrace-bpf/tracer"
)

// checkValues says which flag has a value that it cannot have, where the flag alone does
// not know it.
func (c *config) checkValues() error {
	if size := c.ringSize; size != 0 && (size < tracer.MinRingSize || size > tracer.MaxRingSize || size&(size-1) != 0) {
		least, most := flags.Size(tracer.MinRingSize), flags.Size(tracer.MaxRingSize)
		return fmt.Errorf("--ring-size %s: not a power of two from %s to %s; write one as 8M", size.Text(), least.Text(), most.Text())
	}
	if size, least, reserve := c.maxSize, leastMaxSize, sizeReserve; size > 0 && size < least {
		return fmt.Errorf("--max-size %s: too small; write %s or more, because %s of a trace can wait in memory", size.Text(), least.Text(), reserve.Text())
	}
	if info, err := os.Lstat(c.readyFile); c.readyFile != "" && err == nil && info.Mode().IsRegular() {
		return fmt.Errorf("--ready-file %s: the file exists; remove it first", cli.Word(c.readyFile))
	}
	if n := c.mtrc.words; n != 0 && n != 4 && n != 8 {
		return fmt.Errorf("--mtrc-words %d: write 4 or 8", n)
	}
	if n := c.nettrace.version; n != nettrace.V4 && n != nettrace.V6 {
		return fmt.Errorf("--nettrace-version %d: write %d or %d", n, nettrace.V4, nettrace.V6)
	}
	allocators := tracer.Options{PID: anyPID, Allocators: c.allocators.names}
	if err := allocators.Check(); err != nil {
		for _, name := range c.allocators.names {
			if meant := cli.Nearest(name, tracer.AllocatorKinds()); meant != "" && meant != name {
				return fmt.Errorf("--allocator %s: did you mean --allocator %s?", cli.Word(name), meant)
			}
		}
		return fmt.Errorf("--allocator: %w", err)
	}
	for _, kind := range []struct {
		flag      string
		selection selection.Selection
	}{
		{"--comm", selection.Selection{Comms: c.selection.Comms}},
		{"--cgroup", selection.Selection{Cgroups: c.selection.Cgroups}},
		{"--uid", selection.Selection{Users: c.selection.Users}},
	} {
		if err := kind.selection.Check(); err != nil {
			return fmt.Errorf("%s: %w", kind.flag, err)
		}
	}
	return nil
}

// unexpected returns the error of an argument that belongs to no flag, with what was
// probably meant: a process, a command, processes by name, or a trace that is to be read.
func unexpected(arg string) error {
	shown := cli.Word(arg)
	if n, err := strconv.ParseUint(arg, 10, 31); err == nil && n > 0 {
		return fmt.Errorf("%s: did you mean -p %s?", shown, arg)
	}
	if _, err := exec.LookPath(arg); err == nil {
		text := "did you mean -- " + shown + ", to start it"
		if !strings.Contains(arg, "/") {
			text += ", or --comm " + shown + ", to trace the processes of that name"
		}
		return fmt.Errorf("%s: %s?", shown, text)
	}
	if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
		return fmt.Errorf("%s is a file: if it is a trace, rtrace reads it, as rtrace info %s", shown, shown)
	}
	return fmt.Errorf("%s belongs to no flag; select a process with -p PID or --comm NAME, or write a command after --", shown)
}
