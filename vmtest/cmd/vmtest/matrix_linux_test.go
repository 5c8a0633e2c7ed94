package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asCommand makes the test program the command itself.
const asCommand = "VMTEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// The output of scripts that act as a guest. $t is the token. The output of tests is in the
// form that package testing writes for test2json.
const (
	up       = `echo "$t up '6.1-fake'" | tr "'" '"'; echo "$t start 0"; printf '\026=== RUN   TestA\n';`
	passes   = up + `printf '\026--- PASS: TestA (0.00s)\n\026=== NAME  \n\026PASS\n'; echo "$t end 0 0"; echo "$t over"`
	fails    = up + `printf '    a_test.go:1: no\n\026--- FAIL: TestA (0.00s)\n\026=== NAME  \n\026FAIL\n'; echo "$t end 0 1"; echo "$t over"`
	skips    = up + `printf '    a_test.go:1: no kernel\n\026--- SKIP: TestA (0.00s)\n\026=== NAME  \n\026PASS\n'; echo "$t end 0 0"; echo "$t over"`
	panics   = `echo 'Kernel panic - not syncing'`
	panicsIn = up + panics
	hangs    = `exec sleep 1000`
)

// machines makes a folder of programs: those that the command needs, and scripts that replace
// QEMU and virtme-ng.
func machines(t *testing.T, qemu, vng string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"go", "sh", "grep", "sleep", "cat", "tr"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	// The token is in the plan, which is in the archive of QEMU's guest or in the last argument
	// of virtme-ng.
	const begin = "#!/bin/sh\nfor a; do case $last in -initrd) plan=$a;; --exec) plan=${a##* };; -kernel) kernel=$a;; esac; last=$a; done\n" +
		"t=$(grep -a -o -m 1 '#vmtest-[A-Z0-9]*' \"$plan\")\n"
	for name, script := range map[string]string{"qemu-system-x86_64": qemu, "qemu-system-aarch64": qemu, "vng": vng} {
		if script == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(begin+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The ways in which a matrix can end, with scripts as machines.
func TestMatrix(t *testing.T) {
	dir := t.TempDir()
	kernel := filepath.Join(dir, "vmlinuz")
	if err := os.WriteFile(kernel, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	byVNG := []string{"--backend", "vng"}
	orQEMU := []string{"--backend", "vng", "--or-qemu"}
	const instead = "PLAIN QEMU INSTEAD OF VIRTME-NG"
	tests := map[string]struct {
		qemu, vng string
		args      []string
		code      int
		prints    []string
		not       string // what it must not print
	}{
		"passes":             {qemu: passes, code: exitGood, prints: []string{"6.1-fake", " qemu ", "ok"}},
		"fails":              {qemu: fails, code: exitFailed, prints: []string{"--- FAIL on linux-vmlinuz-" + hostArch + ": rtrace-bpf/vmtest/cpio TestA", "a_test.go:1: no", "FAILED"}},
		"skips":              {qemu: skips, code: exitFailed, prints: []string{"SKIPPED on linux-vmlinuz-" + hostArch + ": no kernel"}},
		"panics at boot":     {qemu: panics, code: exitBroken, prints: []string{"BOOTING ONCE MORE", "| Kernel panic", "FAILED"}},
		"panics in a test":   {qemu: panicsIn, code: exitBroken, prints: []string{"the machine stopped while these tests ran"}, not: "BOOTING ONCE MORE"},
		"hangs at boot":      {qemu: hangs, args: []string{"--boot-limit", "100ms"}, code: exitBroken, prints: []string{"no job had started after 100ms"}},
		"hangs in a test":    {qemu: up + hangs, args: []string{"--limit", "1s"}, code: exitBroken, prints: []string{"it was stopped after 1s"}},
		"no such test":       {qemu: passes, args: []string{"--run", "TestA|TestGone"}, code: exitFailed, prints: []string{"no test has the name TestGone"}, not: "name TestA"},
		"no kernel":          {qemu: passes, args: []string{"--vmlinuz", filepath.Join(dir, "none")}, code: exitBroken, prints: []string{"no such file"}},
		"vng":                {qemu: fails, vng: passes, args: byVNG, code: exitGood, prints: []string{" vng "}},
		"vng fails a test":   {qemu: passes, vng: fails, args: orQEMU, code: exitFailed, prints: []string{" vng "}, not: instead},
		"vng panics":         {qemu: passes, vng: panics, args: byVNG, code: exitBroken, prints: []string{"Kernel panic"}, not: instead},
		"vng panics, qemu":   {qemu: passes, vng: panics, args: orQEMU, code: exitGood, prints: []string{instead, "Kernel panic", "qemu, not vng"}, not: "BOOTING ONCE MORE"},
		"vng hangs, qemu":    {qemu: passes, vng: hangs, args: append([]string{"--boot-limit", "10s"}, orQEMU...), code: exitGood, prints: []string{instead, "qemu, not vng"}},
		"vng does not run":   {qemu: passes, vng: "echo no such option >&2; exit 2", args: orQEMU, code: exitGood, prints: []string{instead, "no such option", "qemu, not vng"}},
		"neither runs":       {qemu: panics, vng: panics, args: orQEMU, code: exitBroken, prints: []string{instead, "BOOTING ONCE MORE"}},
		"vng panics in test": {qemu: passes, vng: panicsIn, args: orQEMU, code: exitBroken, not: instead},
		"no vng":             {qemu: passes, args: byVNG, code: exitBroken, prints: []string{"virtme-ng) is not installed"}},
		"no vng, qemu":       {qemu: passes, args: orQEMU, code: exitGood, prints: []string{instead, "is not installed", "qemu, not vng"}},
		"backend":            {args: []string{"--backend", "xen"}, code: exitUsage},
		"backend of one":     {args: []string{"--kernels", "6.1:xen"}, code: exitUsage, prints: []string{"SERIES:vng"}},
		"series":             {args: []string{"--kernels", "six"}, code: exitUsage, prints: []string{"want a number like 6.12"}},
		"jobs":               {args: []string{"--jobs", "0"}, code: exitUsage},
		"CPUs":               {args: []string{"--cpus", "0"}, code: exitUsage},
		"memory":             {qemu: passes, args: []string{"--memory", "much"}, code: exitUsage, prints: []string{"want an amount like 3G"}},
		"flag":               {args: []string{"--none"}, code: exitUsage},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, output := vmtest(t, machines(t, test.qemu, test.vng), append([]string{"matrix", "--vmlinuz", kernel}, test.args...)...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			for _, text := range test.prints {
				if !strings.Contains(output, text) {
					t.Errorf("the output lacks %q", text)
				}
			}
			if test.not != "" && strings.Contains(output, test.not) {
				t.Errorf("the output contains %q", test.not)
			}
			if t.Failed() {
				t.Log(output)
			}
		})
	}
}

// Two machines run at the same time: each waits for the other.
func TestSideBySide(t *testing.T) {
	dir := t.TempDir()
	var kernels []string
	for _, name := range []string{"one", "two"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		kernels = append(kernels, "--vmlinuz", path)
	}
	if out, err := exec.Command("mkfifo", filepath.Join(dir, "fifo")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	meet := `case $kernel in */one) cat ` + dir + `/fifo >/dev/null;; *) echo >` + dir + `/fifo;; esac; `
	code, output := vmtest(t, machines(t, meet+passes, ""), append([]string{"matrix", "--jobs", "2", "--boot-limit", "1m"}, kernels...)...)
	if code != exitGood || strings.Count(output, "6.1-fake  qemu") != 2 {
		t.Errorf("exit code %d\n%s", code, output)
	}
	// With one machine at a time, the first waits in vain.
	code, output = vmtest(t, machines(t, meet+passes, ""), append([]string{"matrix", "--jobs", "1", "--boot-limit", "100ms"}, kernels...)...)
	if code != exitBroken {
		t.Errorf("exit code %d\n%s", code, output)
	}
}

// vmtest runs the command on a package with few tests, and returns its exit code and its
// complete output.
func vmtest(t *testing.T, path string, args ...string) (code int, output string) {
	t.Helper()
	cmd := commanded(t, path, t.TempDir(), args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}
