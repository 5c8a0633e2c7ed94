//go:build unix

package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rtrace-bpf/internal/atomicfile"
)

// other is a user who is neither root nor the user running the test.
const other = 54321

// everybodys makes a folder like /tmp that contains files, in a folder of root.
func everybodys(t *testing.T, mode fs.FileMode) (dir, precious string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: needs root, to give files away")
	}
	base := t.TempDir()
	dir, precious = filepath.Join(base, "tmp"), filepath.Join(base, "precious")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, mode), os.WriteFile(precious, []byte("precious"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir, precious
}

// A link is followed unless another user has put it into a folder that
// everybody can write to, whether the output is that link or leads to it.
func TestLinksOfOthers(t *testing.T) {
	for name, test := range map[string]struct {
		mode     fs.FileMode
		owner    int
		sudo     string
		followed bool
	}{
		"sticky, other's":        {0o777 | fs.ModeSticky, other, "", false},
		"sticky, root's":         {0o777 | fs.ModeSticky, 0, "", true},
		"sticky, sudo's user's":  {0o777 | fs.ModeSticky, other, "54321", true},
		"sticky, another sudo's": {0o777 | fs.ModeSticky, other, "54322", false},
		"everybody's, other's":   {0o777, other, "", false},
		"a folder of his own":    {0o755, other, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SUDO_UID", test.sudo)
			t.Setenv("SUDO_GID", test.sudo)
			dir, precious := everybodys(t, test.mode)
			link, indirect := filepath.Join(dir, "link"), filepath.Join(filepath.Dir(dir), "indirect")
			dangling := filepath.Join(dir, "dangling")
			if err := errors.Join(
				os.Symlink(precious, link), os.Lchown(link, test.owner, 0), os.Symlink(link, indirect),
				os.Symlink(filepath.Join(filepath.Dir(dir), "new"), dangling), os.Lchown(dangling, test.owner, 0),
			); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{link, indirect, dangling} {
				f, err := atomicfile.Create(path)
				if (err == nil) != test.followed {
					t.Fatalf("%s: %v", path, err)
				}
				if err != nil {
					if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "belongs to another user") {
						t.Errorf("%v", err)
					}
					continue
				}
				if err := f.Commit(); err != nil {
					t.Error(err)
				}
			}
			text, err := os.ReadFile(precious)
			if want := map[bool]string{true: "", false: "precious"}[test.followed]; err != nil || string(text) != want {
				t.Errorf("the file that the links lead to is %q, %v, want %q", text, err, want)
			}
			if info, err := os.Lstat(precious); err != nil || info.Mode() != 0o600 {
				t.Errorf("its mode is %v, %v", info.Mode(), err)
			}
			if _, err := os.Lstat(filepath.Join(filepath.Dir(dir), "new")); (err == nil) != test.followed {
				t.Errorf("the file that was missing: %v", err)
			}
		})
	}
}

// A replaced file passes on its owner and permissions, but a file that another
// user has put into a folder like /tmp is not replaced.
func TestReplacedFiles(t *testing.T) {
	for name, test := range map[string]struct {
		dir, mode fs.FileMode
		owner     int
		replaced  bool
	}{
		"own":               {0o755, 0o600, 0, true},
		"other's":           {0o755, 0o640, other, true},
		"with a set-id bit": {0o755, 0o755 | fs.ModeSetuid, other, true},
		"sticky, own":       {0o777 | fs.ModeSticky, 0o604, 0, true},
		"sticky, other's":   {0o777 | fs.ModeSticky, 0o644, other, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SUDO_UID", "")
			dir, _ := everybodys(t, test.dir)
			path := filepath.Join(dir, "out")
			if err := errors.Join(os.WriteFile(path, []byte("old"), 0o600), os.Chown(path, test.owner, test.owner), os.Chmod(path, test.mode)); err != nil {
				t.Fatal(err)
			}
			f, err := atomicfile.Create(path)
			if (err == nil) != test.replaced {
				t.Fatalf("%v", err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "belongs to another user") {
					t.Errorf("%v", err)
				}
				return
			}
			if err := f.Commit(); err != nil {
				t.Fatal(err)
			}
			info, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			st, ok := info.Sys().(*syscall.Stat_t)
			if !ok || info.Size() != 0 || info.Mode() != test.mode.Perm() || int(st.Uid) != test.owner || int(st.Gid) != test.owner {
				t.Errorf("%v of %d:%d, %d bytes", info.Mode(), st.Uid, st.Gid, info.Size())
			}
		})
	}
}

// The umask determines the mode of a new file.
func TestNewFiles(t *testing.T) {
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	path := filepath.Join(t.TempDir(), "out")
	if err := create(t, path, "text").Commit(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}
