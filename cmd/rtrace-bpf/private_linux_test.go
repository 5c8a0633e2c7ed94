package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// TestFilesAreTheUsers checks that every file is for its owner alone, which under sudo is
// the user that called it, and that there are no files except the trace, its side file and
// the ready file.
func TestFilesAreTheUsers(t *testing.T) {
	const uid, gid = 54321, 54322
	child := waiting(t, "alloc", "1", "10")
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	cmd := command(t, "-p", fmt.Sprint(child.PID), "-o", dir, "--ready-file", ready)
	cmd.Env = append(cmd.Env, fmt.Sprintf("SUDO_UID=%d", uid), fmt.Sprintf("SUDO_GID=%d", gid))
	r := startIn(t, cmd, dir, ready)
	child.Go()
	child.Succeed()
	r.ends(cli.OK)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 3 {
		t.Errorf("files: %v, %v", files, err)
	}
	for _, file := range files {
		var st syscall.Stat_t
		if err := syscall.Lstat(filepath.Join(dir, file.Name()), &st); err != nil {
			t.Fatal(err)
		}
		if st.Mode != syscall.S_IFREG|0o600 || st.Uid != uid || st.Gid != gid {
			t.Errorf("%s: mode %o, owner %d:%d", file.Name(), st.Mode, st.Uid, st.Gid)
		}
	}
}

// Another user that can write to the folder cannot make the command write elsewhere.
func TestLinksInTheFolder(t *testing.T) {
	child := waiting(t, "loop", "1")
	for name, test := range map[string]struct {
		link string // its name; it points to the victim, or to a file that does not exist
		args []string
		code cli.ExitCode
	}{
		"named":        {"trace", []string{"-o", "trace"}, cli.Failed},
		"numbered":     {fmt.Sprintf("rtrace-raw-%d-0", child.PID), nil, cli.OK},
		"side file":    {fmt.Sprintf("rtrace-raw-%d-0.side", child.PID), nil, cli.Failed},
		"side of -o -": {"side", []string{"-o", "-", "--side", "side"}, cli.Failed},
		"ready file":   {"ready", []string{"--ready-file", "ready"}, cli.Failed},
	} {
		for _, to := range []string{"victim", "missing"} {
			t.Run(name+", "+to, func(t *testing.T) {
				dir, elsewhere := t.TempDir(), t.TempDir()
				victim := filepath.Join(elsewhere, "victim")
				if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o644), os.Symlink(filepath.Join(elsewhere, to), filepath.Join(dir, test.link))); err != nil {
					t.Fatal(err)
				}
				cmd := command(t, append(test.args, "-p", fmt.Sprint(child.PID), "--duration", "1ms", "-q")...)
				cmd.Dir = dir
				if got := finish(t, cmd); got.code != int(test.code) {
					t.Errorf("exit code %d, want %d\n%s", got.code, test.code, got.stderr)
				}
				text, err := os.ReadFile(victim)
				if left, _ := os.ReadDir(elsewhere); string(text) != "precious" || err != nil || len(left) != 1 {
					t.Errorf("elsewhere: %v, the file is %q, %v", left, text, err)
				}
			})
		}
	}
}

// A process can choose any name for itself, but nothing in it takes effect on the terminal.
func TestNamesThatActOnTerminals(t *testing.T) {
	testutil.NeedBPF(t)
	const evil = "\x1b]0;owned\a\nrtrace-bpf: lost: 0\x9b31m"
	path := filepath.Join(t.TempDir(), "e\x1b[2J\nvil")
	text, err := os.ReadFile(testutil.Build(t, "alloc"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := execAs(path, evil, "1", "10")
	child := testutil.Start(t, cmd)
	child.Ready()
	plan := finish(t, command(t, "-p", fmt.Sprint(child.PID), "--dry-run"))
	r := startOn(t, "-p", fmt.Sprint(child.PID), "-v", "-v")
	child.Go()
	child.Succeed()
	r.ends(cli.OK)
	for what, text := range map[string]string{"standard error": string(r.Stderr()), "dry run": plan.stdout + plan.stderr} {
		if bytes.ContainsAny([]byte(text), "\x1b\a\r") || bytes.IndexByte([]byte(text), 0x9b) >= 0 || strings.Contains(text, "\nrtrace-bpf: lost: 0\\x9b") {
			t.Errorf("%s: %q", what, text)
		}
	}
	r.says(`(\x1b]0;owned\x07\x0artrace-bpf: lost: 0\x9b31m)`)
}
