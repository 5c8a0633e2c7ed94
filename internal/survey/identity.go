package survey

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"rtrace-bpf/internal/linux/proc"
)

// inode identifies a mapped file.
type inode struct {
	major, minor uint32
	number       uint64
}

func inodeOf(m *proc.Map) inode { return inode{m.Major, m.Minor, m.Inode} }

// identity is what a process is made of.
type identity struct {
	exe        inode
	code       map[inode]bool // files with a mapping that is executable
	tmpfs      map[[2]uint32]bool
	runtimes   []string // "go", "jvm", "v8", "dotnet", "python"
	allocators []string // other than the C library's
	glibc      []inode  // the C library
	musl       bool
}

// signs are names of files that a runtime or an allocator is recognised by.
var signs = []struct {
	name    *regexp.Regexp
	runtime string
	malloc  string
}{
	{regexp.MustCompile(`^libjvm\.so`), "jvm", ""},
	{regexp.MustCompile(`^(libcoreclr|libclrjit)\.so`), "dotnet", ""},
	{regexp.MustCompile(`^(node|nodejs|electron|libnode\.so.*)$`), "v8", ""},
	{regexp.MustCompile(`^(python[0-9.]*|libpython[0-9.]+\.so.*)$`), "python", ""},
	{regexp.MustCompile(`^libjemalloc\.so`), "", "jemalloc"},
	{regexp.MustCompile(`^libtcmalloc[a-z_]*\.so`), "", "tcmalloc"},
	{regexp.MustCompile(`^libmimalloc[a-z_-]*\.so`), "", "mimalloc"},
	{regexp.MustCompile(`^libsnmallocshim[a-z_-]*\.so`), "", "snmalloc"},
}

// doubleMapper is how the name of .NET's memory of compiled code begins, which it maps twice: to
// write, and to execute.
const doubleMapper = "/memfd:doublemapper"

// libc is the name of the GNU C library's file.
var libc = regexp.MustCompile(`^libc(\.so\.6|-2\.[0-9]+\.so)$`)

// muslName is the name of musl's file.
var muslName = regexp.MustCompile(`^(ld-musl-.*|libc\.musl-.*)$`)

// identify looks at the names of mapped files. exe is the path of the program.
func (id *identity) identify(areas []area, exe string) {
	id.code = map[inode]bool{}
	for i := range areas {
		m := &areas[i].Map
		if !m.File() {
			continue
		}
		if m.Perms&proc.Exec != 0 {
			id.code[inodeOf(m)] = true
		}
		if m.Path == exe && id.exe == (inode{}) {
			id.exe = inodeOf(m)
		}
		if m.Perms&proc.Exec == 0 {
			continue
		}
		if strings.HasPrefix(m.Path, doubleMapper) {
			id.runtimes = addName(id.runtimes, "dotnet") // also of a program in a single file
		}
		base := path.Base(m.Path)
		if libc.MatchString(base) {
			id.glibc = append(id.glibc, inodeOf(m))
		}
		id.musl = id.musl || muslName.MatchString(base)
		for _, s := range signs {
			if s.name.MatchString(base) {
				id.runtimes = addName(id.runtimes, s.runtime)
				id.allocators = addName(id.allocators, s.malloc)
			}
		}
	}
}

func addName(to []string, name string) []string {
	if name == "" || slices.Contains(to, name) {
		return to
	}
	return append(to, name)
}

// is reports whether the process has a runtime.
func (id *identity) is(runtime string) bool { return slices.Contains(id.runtimes, runtime) }

// parseMounts returns the devices of tmpfs file systems in the text of /proc/PID/mountinfo.
func parseMounts(text string) map[[2]uint32]bool {
	all := map[[2]uint32]bool{}
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if !ok || len(fields) < 3 {
			continue
		}
		if kind, _, _ := strings.Cut(after, " "); kind != "tmpfs" && kind != "ramfs" && kind != "devtmpfs" {
			continue
		}
		if device, ok := parseDevice(fields[2]); ok {
			all[device] = true
		}
	}
	return all
}
