package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Postproc selects the run of rtrace postproc that a trace is piped through.
type Postproc struct {
	Args []string
	Err  io.Writer // its standard error
}

// postprocessor is a run of rtrace postproc that a trace is piped through.
type postprocessor struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	sent int64 // bytes of the trace
}

// start starts it, in its own process group, so that it reads to the end when the user
// ends the recording. It writes to out.
func (o *Postproc) start(out io.Writer) (*postprocessor, error) {
	program, err := findRtrace()
	if err != nil {
		return nil, err
	}
	p := &postprocessor{cmd: exec.Command(program, append([]string{"postproc"}, o.Args...)...)}
	p.cmd.Stdout, p.cmd.Stderr = out, o.Err
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start rtrace postproc: %w", err)
	}
	return p, nil
}

// findRtrace finds the rtrace that belongs to this program: in the same directory, or else
// in PATH.
func findRtrace() (string, error) {
	if own, err := os.Executable(); err == nil {
		neighbor := filepath.Join(filepath.Dir(own), "rtrace")
		if info, err := os.Stat(neighbor); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return neighbor, nil
		}
	}
	path, err := exec.LookPath("rtrace")
	if err != nil {
		return "", fmt.Errorf("find rtrace for postprocessing, next to this program or in PATH: %w", err)
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
