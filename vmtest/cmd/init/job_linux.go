package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"rtrace-bpf/vmtest/guest"
)

// notRun is the status of a job that could not be started, as in shells.
const notRun = 127

// runJob runs a job and sends its files back. It reports errors of the job on the console and
// returns an error only if the console does not work.
func runJob(w *guest.Writer, number int, job *guest.Job) error {
	for _, path := range job.Files {
		dir, _ := filepath.Split(path) // a path that ends in a slash is a folder
		if err := os.MkdirAll(dir, 0o755); err != nil {
			if err := w.Error(number, err); err != nil {
				return err
			}
		}
	}
	if err := w.Start(number); err != nil {
		return err
	}
	cmd := exec.Command(job.Args[0], job.Args[1:]...)
	cmd.Dir, cmd.Env = job.Dir, job.Env
	cmd.Stdout, cmd.Stderr = w, w
	// Processes that a test has left running must not delay the next job. They cause an error
	// message.
	cmd.WaitDelay = 30 * time.Second
	err := cmd.Run()
	status := notRun
	if exit := (*exec.ExitError)(nil); err == nil || errors.As(err, &exit) {
		err = nil
		status = exitStatus(cmd.ProcessState)
	}
	if err := w.End(number, status); err != nil {
		return err
	}
	if err != nil {
		if err := w.Error(number, err); err != nil {
			return err
		}
	}
	for _, path := range job.Files {
		if err := sendFiles(w, number, path); err != nil {
			return err
		}
	}
	return nil
}

// exitStatus returns the exit status of a process, or 128 plus the number of the signal that
// killed it.
func exitStatus(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// sendFiles sends a file, or all files of a folder.
func sendFiles(w *guest.Writer, number int, top string) error {
	return filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the host knows what is missing
		}
		if err != nil {
			return w.Error(number, err)
		}
		if d.IsDir() {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return w.Error(number, err)
		}
		return w.File(number, path, content)
	})
}
