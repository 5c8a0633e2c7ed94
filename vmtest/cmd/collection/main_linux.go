// Collection downloads the allocators of several Debian releases into a folder, for tests that
// analyse them:
//
//	collection [DIR]
//
// DIR/RELEASE/ARCH then has the files of the packages. apt verifies the packages against the
// signed lists of the system's own mirror. A release or a package that the mirror does not have is
// reported, and the others are downloaded. The default of DIR is rtrace-collection in the user's
// cache.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"strings"

	"rtrace-bpf/vmtest/apt"
)

var (
	releases      = []string{"bullseye", "bookworm", "trixie", "sid"}
	architectures = []string{"amd64", "arm64", "i386"}
)

// names matches the allocators, and what they need to run. Later releases renamed some.
const names = "^(libc6|libjemalloc2|libmimalloc[0-9.]+|libtcmalloc-minimal4(t64)?|libgoogle-perftools4(t64)?|" +
	"musl|libstdc\\+\\+6|libgcc-s1|libunwind8|liblzma5)$"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "collection:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	dir, err := folder(args)
	if err != nil {
		return err
	}
	mirror, err := apt.SystemMirror("/")
	if err != nil {
		return err
	}
	found := 0
	for _, release := range releases {
		for _, arch := range architectures {
			n, err := fetch(ctx, dir, release, arch, mirror)
			if err != nil {
				if ctx.Err() != nil {
					return err
				}
				fmt.Fprintf(os.Stderr, "collection: %s, %s: %v\n", release, arch, err)
			}
			found += n
			fmt.Printf("%-10s %-6s %d packages\n", release, arch, n)
		}
	}
	if found == 0 {
		return fmt.Errorf("no package could be downloaded to %s", dir)
	}
	return nil
}

func folder(args []string) (string, error) {
	switch {
	case len(args) == 1:
		return filepath.Abs(args[0])
	case len(args) > 1:
		return "", fmt.Errorf("one folder, not %d", len(args))
	}
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "rtrace-collection"), err
}

// fetch downloads and unpacks the packages of one release and architecture, and returns how many
// there are. If one is no longer in the archive of security updates, it takes the release's own.
func fetch(ctx context.Context, dir, release, arch string, mirror apt.Mirror) (int, error) {
	n, err := fetchFrom(ctx, filepath.Join(dir, "apt"), dir, release, arch, mirror)
	if err == nil || mirror.Security == "" || ctx.Err() != nil {
		return n, err
	}
	mirror.Security = ""
	m, again := fetchFrom(ctx, filepath.Join(dir, "apt", "archive"), dir, release, arch, mirror)
	if again != nil {
		return n, err
	}
	return m, nil
}

func fetchFrom(ctx context.Context, lists, dir, release, arch string, mirror apt.Mirror) (int, error) {
	private, err := apt.OpenRelease(ctx, lists, arch, mirror, release)
	if err != nil {
		return 0, err
	}
	warning, err := private.Update(ctx)
	if err != nil {
		return 0, err
	}
	if warning != nil {
		fmt.Fprintf(os.Stderr, "collection: %s, %s: %v\n", release, arch, warning)
	}
	packages, err := private.Search(ctx, names)
	if err != nil {
		return 0, err
	}
	var debs []string
	for _, p := range packages {
		deb, err := private.Download(ctx, p)
		if err != nil {
			return 0, err
		}
		debs = append(debs, deb)
	}
	to := filepath.Join(dir, release, arch)
	if err := os.RemoveAll(to); err != nil {
		return 0, err
	}
	for i, deb := range debs {
		if err := apt.Unpack(ctx, deb, to, wanted); err != nil {
			return i, err
		}
	}
	return len(debs), nil
}

// wanted selects libraries and loaders. Later releases have them only below usr.
func wanted(name string) bool {
	name = strings.TrimPrefix(name, "./")
	return (strings.HasPrefix(name, "lib") || strings.HasPrefix(name, "usr/lib")) && strings.Contains(path.Base(name), ".so")
}
