// Init is the first process of a guest of vmtest. It prepares the guest for running programs,
// runs the jobs of the plan one after the other, reports on the console how each ended, and
// turns the machine off.
//
// If it is not the first process (virtme-ng has an init of its own), it gets the path of the
// plan as an argument, and only runs the jobs.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"rtrace-bpf/vmtest/guest"
)

// asRunner is the argument with which init starts itself to run the jobs. The first process
// then only waits for processes that end.
const asRunner = "run-jobs"

func main() {
	switch {
	case len(os.Args) == 3 && os.Args[1] == asRunner:
		report(runJobs(os.Args[2], os.Stdout))
	case os.Getpid() == 1:
		report(beInit())
		halt()
	default:
		report(fmt.Errorf("usage: init %s PLAN, or as the first process of a machine", asRunner))
	}
}

func report(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "vmtest init:", err)
		if os.Getpid() != 1 {
			os.Exit(1)
		}
	}
}

// beInit runs the jobs in a child and reaps all processes until the child has ended.
func beInit() error {
	if err := prepare(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	runner := exec.Command(self, asRunner, guest.PlanPath)
	runner.Stdout, runner.Stderr = os.Stdout, os.Stderr
	if err := runner.Start(); err != nil {
		return err
	}
	for {
		pid, err := syscall.Wait4(-1, nil, 0, nil)
		if err != nil && err != syscall.EINTR {
			return fmt.Errorf("wait: %w", err)
		}
		if pid == runner.Process.Pid {
			return nil
		}
	}
}

// halt turns the machine off.
func halt() {
	unix.Sync()
	report(unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF))
}

// runJobs runs the jobs of a plan and reports on the console how they end.
func runJobs(plan string, console io.Writer) error {
	f, err := os.Open(plan)
	if err != nil {
		return err
	}
	defer f.Close()
	p, err := guest.ReadPlan(f)
	if err != nil {
		return err
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return err
	}
	w := guest.NewWriter(console, p.Token)
	if err := w.Up(unix.ByteSliceToString(name.Release[:])); err != nil {
		return err
	}
	special, err := ownCase()
	if err != nil {
		return err
	}
	for i := range p.Jobs {
		if p.Jobs[i].Case != special {
			continue
		}
		if err := runJob(w, i, &p.Jobs[i]); err != nil {
			return err
		}
	}
	return w.Over()
}

// ownCase returns the case for which this machine was booted, or "".
func ownCase() (string, error) {
	words, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return "", err
	}
	for word := range strings.FieldsSeq(string(words)) {
		if name, ok := strings.CutPrefix(word, guest.CaseWord); ok {
			return name, nil
		}
	}
	return "", nil
}
