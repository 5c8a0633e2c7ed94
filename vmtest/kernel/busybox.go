package kernel

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"rtrace-bpf/vmtest/apt"
	"rtrace-bpf/vmtest/image"
)

// applets are the commands that tests call.
var applets = []string{"sh", "cat", "true", "false", "sleep", "echo", "env", "ls", "unshare", "mount", "umount", "uname", "id", "kill", "setarch", "cp", "rm", "mkdir"}

// Busybox adds a static busybox to an image, as the commands of a small system.
// Its package is unpacked in dir.
func Busybox(ctx context.Context, from *apt.Private, dir string, im *image.Image) error {
	all, err := from.Search(ctx, "^busybox-static$")
	if err != nil {
		return err
	}
	if len(all) != 1 {
		return fmt.Errorf("package busybox-static: %d found", len(all))
	}
	if err := unpackAll(ctx, from, all, dir, func(name string) bool { return filepath.Base(name) == "busybox" }, false); err != nil {
		return err
	}
	for _, path := range []string{"bin/busybox", "usr/bin/busybox"} {
		path = filepath.Join(dir, path)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		for _, name := range applets {
			im.Symlink("/bin/"+name, "busybox")
		}
		im.Symlink("/usr/bin", "../bin")
		return im.File("/bin/busybox", path)
	}
	return fmt.Errorf("package busybox-static: it has no busybox")
}
