// Vmtest runs tests in virtual machines, under Debian's kernels or your own. See
// vmtest/README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
)

// Exit codes. See README.md.
const (
	exitGood    = 0
	exitFailed  = 1 // a test failed
	exitUsage   = 2
	exitBroken  = 3 // there is no result: a build failed, or a machine did not finish
	exitMissing = 4 // everything that ran passed, but a kernel was not available
)

const usage = `usage: vmtest matrix [flags] [PACKAGE...]   run the tests of packages on several kernels
       vmtest run [flags] TEST [ARG...]      run a test program, as go test -exec wants it
       vmtest fetch [flags]                  only fetch the kernels

"vmtest COMMAND --help" lists the flags. See vmtest/README.md.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	code, err := dispatch(ctx, os.Args[1:])
	stop()
	var bad *usageError
	switch {
	case errors.Is(err, pflag.ErrHelp):
		code = exitGood
	case errors.As(err, &bad):
		code = exitUsage
	}
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "vmtest:", err)
	}
	os.Exit(code)
}

// endings returns the signals after which machines are stopped and build results removed. They
// include those for a terminal that was closed and for a reader that has exited (| head).
func endings() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE}
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// usageError is an error of the command line.
type usageError struct{ error }

func dispatch(ctx context.Context, args []string) (code int, err error) {
	command := ""
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	switch command {
	case "matrix":
		return matrix(ctx, args)
	case "run":
		return run(ctx, args)
	case "fetch":
		return fetch(ctx, args)
	case "-h", "--help", "help":
		fmt.Print(usage)
		return exitGood, nil
	}
	return exitUsage, &usageError{fmt.Errorf("want a command: matrix, run or fetch; \"vmtest --help\" lists them")}
}
