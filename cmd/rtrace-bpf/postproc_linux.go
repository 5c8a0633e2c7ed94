package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/postproc"
)

// postprocConfig is what a trace goes through on its way.
type postprocConfig struct {
	options  string // of rtrace postproc, with blanks between
	on       bool
	flag     *pflag.Flag
	variable string // of the environment, if it says so; else empty
}

func (p *postprocConfig) declare(f *pflag.FlagSet) {
	f.StringVarP(&p.options, "postproc", "P", "", "pipe the trace through rtrace postproc with `OPTIONS`, one argument with blanks between, as '-l -c'; what that prints is written in its place (.txt)")
	p.flag = f.Lookup("postproc")
}

// check says what -P does not go with.
func (p *postprocConfig) check(c *config) error {
	if p.on = p.flag.Changed; !p.on {
		return nil
	}
	err := p.conflict(c)
	if err != nil && p.variable != "" {
		err = fmt.Errorf("%s: %w", p.variable, err)
	}
	return err
}

func (p *postprocConfig) conflict(c *config) error {
	if c.format != "sprtrace" || c.dotnet.on {
		return errors.New("-P goes with --format sprtrace, which rtrace postproc reads, and not with --dotnet")
	}
	if c.side != "" {
		return errors.New("-P has no side file: what is printed holds no trace")
	}
	if err := postproc.CheckPiped(strings.Fields(p.options)); err != nil {
		return fmt.Errorf("-P %q: %w", p.options, err)
	}
	return nil
}

// postprocessor is a run of rtrace postproc that a trace is piped through.
type postprocessor struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	sent int64 // bytes of the trace
}

// startPostprocessor starts it, in a process group of its own, so that it reads to the
// end when the user ends the recording. It writes to out and what it has to say to err.
func startPostprocessor(options string, out, errOut io.Writer) (*postprocessor, error) {
	program, err := findRtrace()
	if err != nil {
		return nil, err
	}
	p := &postprocessor{cmd: exec.Command(program, append([]string{"postproc"}, strings.Fields(options)...)...)}
	p.cmd.Stdout, p.cmd.Stderr = out, errOut
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start rtrace postproc: %w", err)
	}
	return p, nil
}

// findRtrace finds the rtrace that belongs to this program: beside it, or else where
// commands are looked for.
func findRtrace() (string, error) {
	if own, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(own), "rtrace")
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return beside, nil
		}
	}
	path, err := exec.LookPath("rtrace")
	if err != nil {
		return "", fmt.Errorf("find rtrace for -P, beside rtrace-bpf or in PATH: %w", err)
	}
	return path, nil
}

// Write implements io.Writer.
func (p *postprocessor) Write(b []byte) (int, error) {
	n, err := p.in.Write(b)
	p.sent += int64(n)
	if errors.Is(err, syscall.EPIPE) {
		err = errors.New("rtrace postproc has ended: no more can be written to it")
	}
	return n, err
}

// Close ends the input, and waits until everything is written.
func (p *postprocessor) Close() error {
	err := p.in.Close()
	if e := p.cmd.Wait(); e != nil {
		err = fmt.Errorf("rtrace postproc: %w", e)
	}
	return err
}
