package suite

import (
	"path/filepath"
	"strings"
)

// coverDir names a folder, which must exist.
const coverDir = "test.gocoverdir"

// outputs are the flags of a test program that name its output files.
var outputs = map[string]bool{
	"test.coverprofile": true, coverDir: true, "test.cpuprofile": true, "test.memprofile": true,
	"test.blockprofile": true, "test.mutexprofile": true, "test.trace": true,
}

// Arguments takes the arguments that go test passes to a test program. It returns those to pass
// to it in a guest, and the files and folders that it will write, as absolute paths
// (guest.Job.Files). dir is the working directory.
func Arguments(args []string, dir string) (kept, files []string) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" || !strings.HasPrefix(arg, "-") {
			return append(kept, args[i:]...), files
		}
		name, value, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case name == "test.testlogfile":
			// This flag is for the cache of go test, which does not take kernels into account.
			if !joined {
				i++
			}
		case name == "test.paniconexit0":
			// go test uses it to detect os.Exit(0), but not under -exec
		case outputs[name]:
			if !joined && i+1 < len(args) {
				i++
				value = args[i]
			}
			if !filepath.IsAbs(value) {
				value = filepath.Join(dir, value)
			}
			if name == coverDir {
				files = append(files, value+"/")
			} else {
				files = append(files, value)
			}
			kept = append(kept, "-"+name+"="+value)
		default:
			kept = append(kept, arg)
		}
	}
	return kept, files
}

// Selection returns the arguments of a test program that select tests.
func Selection(args []string) []string {
	var out []string
	for _, arg := range args {
		switch name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "="); name {
		case "test.run", "test.skip", "test.short", "test.count":
			out = append(out, arg)
		}
	}
	return out
}
