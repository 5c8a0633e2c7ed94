package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"rtrace-bpf/vmtest/result"
)

// report writes the results in all forms and returns the exit code.
func (m *matrixRun) report(runs []*result.Run) (int, error) {
	// If a machine has stopped, its names may be missing for that reason.
	if exitCode(runs) != exitBroken {
		for _, name := range m.unmatched(runs) {
			fmt.Printf("--- FAIL: no test has the name %s\n", name)
		}
	}
	fmt.Println()
	if err := result.Table(os.Stdout, runs); err != nil {
		return exitBroken, err
	}
	for path, write := range map[string]func(io.Writer, []*result.Run) error{m.junit: result.JUnit, m.tap: result.TAP} {
		if path == "" {
			continue
		}
		f, err := os.Create(path)
		if err != nil {
			return exitBroken, err
		}
		if err := errors.Join(write(f, runs), f.Close()); err != nil {
			return exitBroken, err
		}
	}
	return exitCode(runs), nil
}

// exitCode returns the exit code of the worst run. If no kernel was available, there is no
// result.
func exitCode(runs []*result.Run) int {
	if !slices.ContainsFunc(runs, func(r *result.Run) bool { return r.Missing == "" }) {
		return exitBroken
	}
	code := exitGood
	for _, r := range runs {
		switch {
		case r.Broken != "":
			return exitBroken
		case !r.Good():
			code = exitFailed
		case r.Missing != "" && code == exitGood:
			code = exitMissing
		}
	}
	return code
}

// addProfile adds the profile of one package's run to the combined profile.
func (m *matrixRun) addProfile(name string, profile []byte) error {
	if m.cover == "" {
		return fmt.Errorf("the guest sent %s, which was not requested", name)
	}
	m.adding.Lock()
	defer m.adding.Unlock()
	before, err := os.ReadFile(m.cover)
	if err != nil {
		return err
	}
	mode, blocks, _ := strings.Cut(string(profile), "\n")
	if len(before) == 0 {
		blocks = mode + "\n" + blocks
	}
	return os.WriteFile(m.cover, append(before, blocks...), 0o644)
}
