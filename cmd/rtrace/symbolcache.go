package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/symbol/linecache"
)

// symbolCache is where results from debugging information are kept for the next run.
type symbolCache struct{ dir string }

// noCache is the value of the flag for no cache.
const noCache = "off"

func (c *symbolCache) add(f *pflag.FlagSet) {
	f.StringVar(&c.dir, "symbol-cache", "", "`DIR|off`: a folder that keeps results from debugging information for the next run, or off (default: rtrace/symbols in your cache folder)")
}

// open returns the cache, or nil for none. If the user named no folder, it is not an error
// if there can be none.
func (c *symbolCache) open() (*linecache.Cache, error) {
	dir := c.dir
	switch dir {
	case noCache:
		return nil, nil
	case "":
		if dir = defaultCache(); dir == "" {
			return nil, nil
		}
	}
	cache, err := linecache.Open(dir)
	if err != nil {
		if c.dir == "" {
			return nil, nil
		}
		return nil, cli.FileError("opening the symbol cache", dir, err)
	}
	cache.Producer = cli.BuildVersion()
	return cache, nil
}

// defaultCache returns the folder below the user's cache folder. It is empty without a home
// folder.
func defaultCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(dir, home) {
		if info, err := os.Stat(home); err != nil || !info.IsDir() {
			return ""
		}
	}
	return filepath.Join(dir, "rtrace", "symbols")
}
