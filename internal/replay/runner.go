package replay

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed program/replay.c program/program.h program/system.h
var sources embed.FS

// Touch selects the bytes of its blocks that a replay writes to.
type Touch string

// The ways to touch.
const (
	TouchNone  Touch = "none"  // none: only memory that the allocator touches is used
	TouchFirst Touch = "first" // one byte in each page of a block
	TouchAll   Touch = "all"   // all bytes
)

// Runner is a program that is ready to run.
type Runner struct {
	binary, program string
}

// Files that Prepare writes in addition to the sources.
const binaryName, programName = "replay", "program"

// Files returns the names of the files that Prepare writes.
func Files() []string {
	names := []string{binaryName, programName}
	files, _ := sources.ReadDir("program") // embedded
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

// Prepare writes the C sources and the program's file into a folder and
// compiles the sources. The C compiler is that of the environment variable CC,
// or cc.
func Prepare(ctx context.Context, dir string, p *Program) (*Runner, error) {
	if !supported {
		return nil, errors.New("replays run on Linux only")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the folder of the replay: %w", err)
	}
	r := &Runner{binary: filepath.Join(dir, binaryName), program: filepath.Join(dir, programName)}
	if err := compile(ctx, dir, r.binary); err != nil {
		return nil, err
	}
	f, err := os.Create(r.program)
	if err != nil {
		return nil, fmt.Errorf("writing the program to replay: %w", err)
	}
	if err := errors.Join(p.Write(f), f.Close()); err != nil {
		return nil, fmt.Errorf("writing the program to replay: %w", err)
	}
	return r, nil
}

func compile(ctx context.Context, dir, binary string) error {
	files, err := sources.ReadDir("program")
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := sources.ReadFile("program/" + f.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name()), text, 0o644); err != nil {
			return fmt.Errorf("writing the replay's source: %w", err)
		}
	}
	cc := strings.Fields(os.Getenv("CC"))
	if len(cc) == 0 {
		cc = []string{"cc"}
	}
	if _, err := exec.LookPath(cc[0]); err != nil {
		return fmt.Errorf("no C compiler: %w; install one (Debian package: gcc) or set CC", err)
	}
	args := append(cc[1:], "-std=c11", "-O2", "-pthread", "-o", binary, filepath.Join(dir, "replay.c"), "-ldl")
	if _, err := run(ctx, os.Environ(), cc[0], args...); err != nil {
		return fmt.Errorf("compiling the replay: %w", err)
	}
	return nil
}

// Run replays the program once with the given malloc.
func (r *Runner) Run(ctx context.Context, m Malloc, touch Touch) (Run, error) {
	env := os.Environ()
	for i := range env {
		if strings.HasPrefix(env[i], "LD_PRELOAD=") {
			env[i] = "LD_PRELOAD="
		}
	}
	if m.Path != "" {
		env = append(env, "LD_PRELOAD="+m.Path)
	}
	out, err := run(ctx, env, r.binary, r.program, string(touch))
	if err != nil {
		return Run{}, fmt.Errorf("replaying with %s: %w", m.Name, err)
	}
	result, err := parseRun(out)
	if err == nil {
		err = m.servedBy(result.Library)
	}
	if err != nil {
		return Run{}, fmt.Errorf("replaying with %s: %w", m.Name, err)
	}
	return result, nil
}

// run runs a command in its own process group, which is killed when ctx ends,
// and returns its output. Errors contain the command's error output.
func run(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &errOut
	ownGroup(cmd)
	err := cmd.Run()
	if err == nil {
		return out.Bytes(), nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if text := strings.TrimSpace(errOut.String()); text != "" {
		return nil, fmt.Errorf("%w: %s", err, text)
	}
	return nil, err
}

// Row is a malloc and the results of its runs.
type Row struct {
	Malloc
	Runs []Run
}

// Compare runs the program with each malloc in turn, the given number of times
// each, so that other load on the machine affects all of them equally. It calls
// progress before each run.
func (r *Runner) Compare(ctx context.Context, mallocs []Malloc, touch Touch, runs int, progress func(done, of int)) ([]Row, error) {
	rows := make([]Row, len(mallocs))
	for i := range runs {
		for j, m := range mallocs {
			progress(i*len(mallocs)+j, runs*len(mallocs))
			run, err := r.Run(ctx, m, touch)
			if err != nil {
				return nil, err
			}
			rows[j].Malloc = m
			rows[j].Runs = append(rows[j].Runs, run)
		}
	}
	return rows, nil
}
