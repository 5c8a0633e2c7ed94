// Package suite builds the tests of a module for a guest: the test programs, and
// the programs that they trace, which cannot be built where there is no compiler
// (see Prepare).
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
	Arch string // as Go names it, which is as Debian does: amd64, arm64
	Root string // of the module
	Work string // a folder for what is built
	// Compilers returns the variables CC and CXX that make testutil.Build compile
	// for an architecture that is not this machine's.
	Compilers func(ctx context.Context) ([]string, error)
}

// Package is a package with its test program.
type Package struct {
	Path   string // of the import
	Dir    string
	Binary string
}

// Triplet is how compilers name a machine.
func Triplet(arch string) string {
	return map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[arch]
}

// environment is that of builds for the target. What a build leaves behind that is
// interrupted lies among what is removed at the end.
func (t *Target) environment() []string {
	return append(os.Environ(), "GOOS=linux", "GOARCH="+t.Arch, "CGO_ENABLED=0", "TMPDIR="+t.Work)
}

// Build builds the test programs of all packages that have tests and match the
// patterns. cover, if not empty, are the patterns of packages whose coverage is
// to be measured.
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

// prepareLimit bounds the run of Prepare, which waits for compilers only.
const prepareLimit = "30m"

// Prepare builds the programs that the tests of a package trace, by a run of
// them on this machine that starts no program (RTRACE_PREPARING, see package
// testutil). Their failures mean nothing then. args are those of the test
// program. The folder of programs is returned.
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
	// Some test programs are commands when they have no argument.
	run := exec.CommandContext(ctx, binary, append([]string{"-test.v=true", "-test.timeout=" + prepareLimit}, args...)...)
	run.Dir, run.Env = p.Dir, env
	run.Stdout, run.Stderr = log, log
	var exit *exec.ExitError
	if err := run.Run(); err != nil && !errors.As(err, &exit) {
		return "", fmt.Errorf("prepare the programs of %s: %w", p.Path, err)
	}
	said, err := os.ReadFile(log.Name())
	if err != nil {
		return "", err
	}
	if _, what, ok := strings.Cut(string(said), ": build "); ok {
		return "", fmt.Errorf("prepare the programs of %s: build %.2000s", p.Path, what)
	}
	if strings.Contains(string(said), "\npanic: test timed out") {
		return "", fmt.Errorf("prepare the programs of %s: not done after %s", p.Path, prepareLimit)
	}
	return dir, nil
}

// output runs a command; what it says is part of the error.
func output(cmd *exec.Cmd) ([]byte, error) {
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, said.Bytes())
	}
	return out.Bytes(), nil
}
