// Package suite builds the tests of a module for a guest: the test programs, and the programs
// that they trace, which cannot be built in a guest without a compiler (see Prepare).
package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Target is what tests are built for.
type Target struct {
	Arch string // Go's name, which equals Debian's: amd64, arm64
	Root string // of the module
	Work string // a folder for build results
	// Compilers returns the variables CC and CXX with which testutil.Build compiles for another
	// architecture than this machine's.
	Compilers func(ctx context.Context) ([]string, error)
}

// Package is a package with its test program.
type Package struct {
	Path   string // of the import
	Dir    string
	Binary string
}

// Triplet returns the compilers' name for a machine.
func Triplet(arch string) string {
	return map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[arch]
}

// environment returns the environment for builds for the target. Temporary files of an
// interrupted build are inside a folder that is removed at the end.
func (t *Target) environment() []string {
	return append(os.Environ(), "GOOS=linux", "GOARCH="+t.Arch, "CGO_ENABLED=0", "TMPDIR="+t.Work)
}

// Build builds the test programs of all packages that have tests and match the patterns. If
// cover is not empty, it holds the patterns of packages whose coverage is measured.
func (t *Target) Build(ctx context.Context, patterns []string, cover string) ([]Package, error) {
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"}, patterns...)...)
	list.Dir, list.Env = t.Root, t.environment()
	out, err := output(list)
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var all []Package
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := in.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		all = append(all, Package{
			Path: p.ImportPath, Dir: p.Dir,
			Binary: filepath.Join(t.Work, strings.ReplaceAll(p.ImportPath, "/", "-")+".test"),
		})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no tests in %s", strings.Join(patterns, " "))
	}
	for _, p := range all {
		args := []string{"test", "-c", "-o", p.Binary}
		if cover != "" {
			args = append(args, "-cover", "-coverpkg="+cover)
		}
		build := exec.CommandContext(ctx, "go", append(args, p.Path)...)
		build.Dir, build.Env = t.Root, t.environment()
		if _, err := output(build); err != nil {
			return nil, fmt.Errorf("build the tests of %s: %w", p.Path, err)
		}
	}
	return all, nil
}

// prepareLimit bounds the run of Prepare, which only waits for compilers.
const prepareLimit = "30m"

// Prepare builds the programs that the tests of a package trace. It runs the tests on this
// machine without starting a program (RTRACE_PREPARING, see package testutil), so that their
// failures mean nothing. args are the arguments of the test program. Prepare returns the folder
// of programs.
func (t *Target) Prepare(ctx context.Context, p Package, args []string) (string, error) {
	dir := filepath.Join(t.Work, "programs")
	binary, env := p.Binary, append(t.environment(), "RTRACE_PREPARED="+dir, "RTRACE_PREPARING=1")
	if t.Arch != runtime.GOARCH {
		binary = p.Binary + ".host"
		build := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, ".")
		build.Dir = p.Dir
		if _, err := output(build); err != nil {
			return "", fmt.Errorf("build the tests of %s for this machine: %w", p.Path, err)
		}
		if os.Getenv("CC") == "" && os.Getenv("CXX") == "" {
			compilers, err := t.Compilers(ctx)
			if err != nil {
				return "", err
			}
			env = append(env, compilers...)
		}
	}
	log, err := os.Create(binary + ".prepare")
	if err != nil {
		return "", err
	}
	defer log.Close()
	// Some test programs act as commands if they have no argument.
	run := exec.CommandContext(ctx, binary, append([]string{"-test.v=true", "-test.timeout=" + prepareLimit}, args...)...)
	run.Dir, run.Env = p.Dir, env
	run.Stdout, run.Stderr = log, log
	var exit *exec.ExitError
	if err := run.Run(); err != nil && !errors.As(err, &exit) {
		return "", fmt.Errorf("prepare the programs of %s: %w", p.Path, err)
	}
	text, err := os.ReadFile(log.Name())
	if err != nil {
		return "", err
	}
	if _, what, ok := strings.Cut(string(text), ": build "); ok {
		return "", fmt.Errorf("prepare the programs of %s: build %.2000s", p.Path, what)
	}
	if strings.Contains(string(text), "\npanic: test timed out") {
		return "", fmt.Errorf("prepare the programs of %s: not done after %s", p.Path, prepareLimit)
	}
	return dir, nil
}

// output runs a command and returns its standard output. An error includes its standard error.
func output(cmd *exec.Cmd) ([]byte, error) {
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, stderr.Bytes())
	}
	return out.Bytes(), nil
}
