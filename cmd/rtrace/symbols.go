package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/debuginfod"
	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/safefile"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/symbol/resolve"
)

// symbolFlags select where the files of a trace are. The zero value means their places on
// this machine.
type symbolFlags struct {
	root    string
	dirs    []string
	perfMap string
	servers string // empty: no server
	cache   symbolCache
}

// fromEnvironment means the servers in DEBUGINFOD_URLS.
const fromEnvironment = "DEBUGINFOD_URLS"

// add adds the flags of a command whose -r is --root.
func (o *symbolFlags) add(f *pflag.FlagSet) { o.addPlaces(f, "r") }

// addPlaces adds the flags. short is the short form of --root, which may be empty.
func (o *symbolFlags) addPlaces(f *pflag.FlagSet, short string) {
	f.StringVarP(&o.root, "root", short, "", "look for files, debug files and perf maps first below `DIR`, a copy of the traced machine's root folder")
	f.StringArrayVar(&o.dirs, "debug-dir", nil, "look for debug files, and for all files by build ID, in `DIR` instead of "+symbol.DebugDir+"; may be repeated")
	f.StringVar(&o.perfMap, "perf-map", "", "read names of generated code from `FILE`, or none (default: /tmp/perf-PID.map if it belongs to you, root or the process's user)")
	f.StringVar(&o.servers, "debuginfod", "", "ask the debuginfod server `URL` for files that are not found (default: the servers in the environment variable "+fromEnvironment+"); downloads are kept in your cache folder, below rtrace/debuginfod")
	o.cache.add(f)
	f.Lookup("debuginfod").NoOptDefVal = fromEnvironment
}

// checkFolder returns an error if the value of a flag is not a folder. It may be empty.
func checkFolder(flag, dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return cli.FileError(flag, dir, err)
	case !info.IsDir():
		return cli.Usagef("%s %s is not a directory", flag, dir)
	}
	return nil
}

// check checks the flags.
func (o *symbolFlags) check() error {
	if err := checkFolder("--root", o.root); err != nil {
		return err
	}
	for _, dir := range o.dirs {
		if err := checkFolder("--debug-dir", dir); err != nil {
			return err
		}
	}
	return nil
}

// options returns the options of a resolver that looks there, and asks servers if requested.
// warn gets a warning for each file that is not used.
func (o *symbolFlags) options(ctx context.Context, warn func(error)) (resolve.Options, error) {
	r := o.local(warn)
	var err error
	if r.Cache, err = o.cache.open(); err != nil {
		return r, err
	}
	if o.servers == "" {
		return r, nil
	}
	c, err := o.client(warn)
	if err != nil {
		return r, err
	}
	r.Fetch = func(buildID string, debug bool) string { return c.Fetch(ctx, buildID, debug) }
	return r, nil
}

// local returns the options of a resolver that asks no servers.
func (o *symbolFlags) local(warn func(error)) resolve.Options {
	r := resolve.Options{Places: symbol.Places{Root: o.root, Debug: o.dirs}, Warn: warn}
	switch o.perfMap {
	case "none":
	case "":
		r.PerfMap = func(pid int32) (string, func(fs.FileInfo) bool) {
			if pid <= 0 {
				return "", nil
			}
			// Anybody can create a file of that name.
			return o.root + "/tmp/perf-" + strconv.Itoa(int(pid)) + ".map", func(info fs.FileInfo) bool {
				return safefile.Ours(info) || proc.MayHaveMade(int(pid), info)
			}
		}
	default:
		r.PerfMap = func(int32) (string, func(fs.FileInfo) bool) { return o.perfMap, nil }
	}
	return r
}

// client returns a client of the servers in the flag.
func (o *symbolFlags) client(warn func(error)) (*debuginfod.Client, error) {
	list := o.servers
	if list == fromEnvironment {
		list = os.Getenv(fromEnvironment)
		if list == "" {
			return nil, cli.Usagef("--debuginfod: name a server with --debuginfod=URL, or in the environment variable %s", fromEnvironment)
		}
	}
	urls, err := debuginfod.ParseURLs(list)
	if err != nil {
		return nil, cli.Usagef("--debuginfod: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("--debuginfod: finding a folder for what servers send: %w", err)
	}
	return &debuginfod.Client{URLs: urls, Folder: filepath.Join(cache, "rtrace", "debuginfod"), Warn: warn}, nil
}

// warnings prints warnings, of which there may be one for each file.
type warnings struct {
	w       io.Writer
	command string
	quiet   bool
	n       int
}

// maxWarnings is how many are printed; the others are counted.
const maxWarnings = 10

func (w *warnings) add(err error) {
	if w.n++; w.n <= maxWarnings && !w.quiet {
		fmt.Fprintf(w.w, "rtrace %s: warning: %s\n", w.command, printable.Name(err.Error()))
	}
}

// close prints how many warnings were left out.
func (w *warnings) close() {
	if n := w.n - maxWarnings; n > 0 && !w.quiet {
		fmt.Fprintf(w.w, "rtrace %s: warning: and %d more\n", w.command, n)
	}
}
