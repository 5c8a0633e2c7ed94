package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// If -o ends with a slash, the directory is created. If that is impossible, there is an
// error, and the command does not run.
func TestDirectoryIsMade(t *testing.T) {
	testutil.NeedBPF(t)
	const uid, gid = 54321, 54322
	dir := t.TempDir()
	mark := filepath.Join(dir, "mark")
	traced := func(output string) result {
		cmd := command(t, "-o", output, "--", "touch", mark)
		cmd.Dir = dir
		cmd.Env = append(cmd.Env, fmt.Sprintf("SUDO_UID=%d", uid), fmt.Sprintf("SUDO_GID=%d", gid))
		return finish(t, cmd)
	}
	for range 2 { // the second time it exists
		if got := traced("traces/"); got.code != int(cli.OK) {
			t.Fatalf("exit code %d, %s", got.code, got.stderr)
		}
	}
	var st syscall.Stat_t
	if err := syscall.Stat(filepath.Join(dir, "traces"), &st); err != nil || st.Mode != syscall.S_IFDIR|0o700 || st.Uid != uid || st.Gid != gid {
		t.Errorf("%v: mode %o, owner %d:%d", err, st.Mode, st.Uid, st.Gid)
	}
	if all, err := filepath.Glob(filepath.Join(dir, "traces", "rtrace-raw-*-0")); err != nil || len(all) != 2 {
		t.Errorf("traces %v, %v", all, err)
	}
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	for output, want := range map[string]string{
		"no/such/":  "make the directory no/such: open no: no such file or directory",
		"no/such/t": "hint: the directory is missing; create it first: mkdir -p no/such",
	} {
		if got := traced(output); got.code != int(ownFailure) || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: exit code %d, %s, want %s", output, got.code, got.stderr, want)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the command has run")
	}
}
