package main

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// limited returns the command with at most the given bytes of writable memory
// (RLIMIT_DATA), ready to be started. The Go runtime ends when it gets no more. It uses the
// program itself, because the test binary has threads of the C library with megabytes of
// stack each.
func limited(t *testing.T, program string, bytes int, args ...string) *exec.Cmd {
	t.Helper()
	const script = `ulimit -d "$0" && exec "$@"` // in KiB
	return exec.Command("sh", append([]string{"-c", script, fmt.Sprint(bytes >> 10), program}, args...)...)
}

// replacements put something else in the place of a mapped file.
var replacements = map[string]func(path string) error{
	"fifo":      func(path string) error { return unix.Mkfifo(path, 0o666) },
	"device":    func(path string) error { return unix.Mknod(path, unix.S_IFCHR|0o666, 1<<8|5) }, // /dev/zero
	"block":     func(path string) error { return unix.Mknod(path, unix.S_IFBLK|0o666, 7<<8) },
	"folder":    func(path string) error { return os.Mkdir(path, 0o777) },
	"loop":      func(path string) error { return os.Symlink(filepath.Base(path), path) },
	"to zero":   func(path string) error { return os.Symlink("/dev/zero", path) },
	"to a tty":  func(path string) error { return os.Symlink("/dev/tty", path) },
	"to memory": func(path string) error { return os.Symlink("/proc/self/mem", path) },
	"to events": func(path string) error { return os.Symlink("/proc/kmsg", path) },
	"missing":   func(string) error { return nil },
	"sparse": func(path string) error {
		return errors.Join(os.WriteFile(path, []byte(elf.ELFMAG), 0o600), os.Truncate(path, 1<<42))
	},
	"socket": func(path string) error {
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err == nil {
			listener.SetUnlinkOnClose(false)
			err = listener.Close()
		}
		return err
	},
}

// TestReplacedLibraries checks that a process is traced as usual whatever it puts in the
// place of its mapped files.
func TestReplacedLibraries(t *testing.T) {
	program := standalone(t)
	dir := t.TempDir()
	text, err := os.ReadFile(testutil.Build(t, "alloc"))
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"1", "500"}
	for name := range replacements {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o700); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	child := waiting(t, "mapmany", args...)
	for name, replace := range replacements {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.Remove(path), replace(path)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	hostile(t, program, child, 500)
}

// standalone builds the command as users have it, for a limit on its memory.
func standalone(t *testing.T) string {
	t.Helper()
	return testutil.BuildCommand(t, "rtrace-bpf/cmd/rtrace-bpf")
}

// hostile traces a process in several ways with little memory, and fails the test unless
// all calls are recorded: pairs of malloc and free.
func hostile(t *testing.T, program string, child *testutil.Child, pairs int) {
	t.Helper()
	pid := fmt.Sprint(child.PID)
	if got := finish(t, limited(t, program, memoryLimit, "--dry-run", "-p", pid)); got.code != 0 {
		t.Errorf("dry run: exit code %d\n%s", got.code, got.stderr)
	}
	var all []*running
	formats := []string{"sprtrace", "mtrc", "jsonl"}
	if !testutil.Sweep(t) {
		formats = formats[:1]
	}
	for _, format := range formats {
		dir := t.TempDir()
		ready := filepath.Join(dir, "ready")
		cmd := limited(t, program, memoryLimit, "-p", pid, "--format", format, "-A", "-o", dir, "--ready-file", ready)
		all = append(all, startIn(t, cmd, dir, ready))
	}
	child.Go()
	child.Succeed()
	for _, r := range all {
		r.ends(cli.OK)
		r.says(fmt.Sprintf("%d events: %d allocations, %d frees", 2*pairs, pairs, pairs))
	}
}

// memoryLimit is how many bytes suffice for the command: for the Go runtime and the
// program's own data, with two CPUs.
const memoryLimit = 256 << 20

// lie is an ELF file whose headers claim these sizes. The file is sparse, so that the sizes
// are true and the contents zeros.
type lie struct {
	count    int // section headers
	typ      elf.SectionType
	name     string // of all sections
	size     uint64 // of each section
	link     uint32
	flags    elf.SectionFlag
	content  []byte // where each section begins
	segments int    // segments in addition to the loaded one
	segment  elf.ProgType
}

const lieSize = 1 << 40

// write writes the file to path.
func (l *lie) write(path string) error {
	machine := elf.EM_X86_64
	if runtime.GOARCH == "arm64" {
		machine = elf.EM_AARCH64
	}
	const page, headers, names, content = 4096, 1 << 20, 2 << 20, 3 << 20
	head := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(machine), Version: 1, Phoff: 64, Shoff: headers, Ehsize: 64,
		Phentsize: 56, Phnum: uint16(1 + l.segments), Shentsize: 64, Shnum: uint16(l.count), Shstrndx: 1,
	}
	copy(head.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	segments := []elf.Prog64{{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Filesz: lieSize, Memsz: lieSize, Align: page}}
	for range l.segments {
		segments = append(segments, elf.Prog64{Type: uint32(l.segment), Off: content, Vaddr: content, Filesz: l.size, Memsz: l.size})
	}
	var table []elf.Section64
	for i := range l.count {
		s := elf.Section64{Name: 1, Type: uint32(l.typ), Flags: uint64(l.flags), Off: content, Addr: content, Size: l.size, Link: l.link}
		if i == 0 {
			s = elf.Section64{}
		}
		if i == 1 {
			s = elf.Section64{Name: 0, Type: uint32(elf.SHT_STRTAB), Off: names, Size: 1 << 29}
		}
		table = append(table, s)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	defer f.Close()
	put := func(at int64, data any) {
		b, ok := data.([]byte)
		if !ok {
			var e error
			b, e = binary.Append(nil, binary.LittleEndian, data)
			err = errors.Join(err, e)
		}
		_, e := f.WriteAt(b, at)
		err = errors.Join(err, e)
	}
	put(0, head)
	put(64, segments)
	put(headers, table)
	put(names, []byte("\x00"+l.name+"\x00"))
	put(content, l.content)
	return errors.Join(err, f.Truncate(lieSize))
}

// TestLyingFiles checks files that claim huge parts, and have them as holes.
func TestLyingFiles(t *testing.T) {
	program := standalone(t)
	dir := t.TempDir()
	if err := os.Truncate(mustCreate(t, filepath.Join(dir, "probe")), lieSize); err != nil {
		t.Fatalf("files of %d bytes, of holes, in %s (TMPDIR names another file system): %v", lieSize, dir, err)
	}
	lies := map[string]*lie{
		"symbols":     {count: 8, typ: elf.SHT_DYNSYM, name: ".dynsym", size: 24 << 24, link: 1},
		"all symbols": {count: 8, typ: elf.SHT_SYMTAB, name: ".symtab", size: 1 << 39, link: 1},
		"sections":    {count: 65279, typ: elf.SHT_PROGBITS, name: ".text", size: 1 << 30, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR},
		"notes":       {count: 65279, typ: elf.SHT_NOTE, name: ".note.gnu.build-id", size: 1 << 39},
		"frames":      {count: 4, typ: elf.SHT_PROGBITS, name: ".eh_frame", size: 1 << 38, flags: elf.SHF_ALLOC},
		"debug frame": {count: 4, typ: elf.SHT_PROGBITS, name: ".debug_frame", size: 1 << 38},
		"lines":       {count: 4, typ: elf.SHT_PROGBITS, name: ".debug_line", size: 1 << 38},
		"compressed":  {count: 4, typ: elf.SHT_PROGBITS, name: ".debug_frame", size: 1 << 30, flags: elf.SHF_COMPRESSED, content: compressedHead(1 << 38)},
		"link":        {count: 4, typ: elf.SHT_PROGBITS, name: ".gnu_debuglink", size: 16, content: []byte("link\x00\x00\x00\x00\x01\x02\x03\x04")},
		"itself":      {count: 4, typ: elf.SHT_PROGBITS, name: ".gnu_debuglink", size: 16, content: []byte("itself\x00\x00\x01\x02\x03\x04")},
		"fifo link":   {count: 4, typ: elf.SHT_PROGBITS, name: ".gnu_debuglink", size: 16, content: []byte("fifo\x00\x00\x00\x00\x01\x02\x03\x04")},
		"segments":    {segments: 60000, segment: elf.PT_LOAD, size: 1 << 39},
		"dynamic":     {segments: 1000, segment: elf.PT_DYNAMIC, size: 1 << 39},
		"frame index": {segments: 1000, segment: elf.PT_GNU_EH_FRAME, size: 1 << 39, content: []byte{1, 0x1b, 3, 0x3b, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f}},
		"note parts":  {segments: 60000, segment: elf.PT_NOTE, size: 1 << 39},
		"\x1b[2J\n":   {count: 2},
	}
	args := []string{"1", "300"}
	for name, l := range lies {
		path := filepath.Join(dir, name)
		if err := l.write(path); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		args = append(args, path)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	hostile(t, program, waiting(t, "mapmany", args...), 300)
}

// compressedHead is an Elf64_Chdr that claims the given size.
func compressedHead(size uint64) []byte {
	b, _ := binary.Append(nil, binary.LittleEndian, elf.Chdr64{Type: uint32(elf.COMPRESS_ZLIB), Size: size, Addralign: 1})
	return append(b, 0x78, 0x9c)
}

func mustCreate(t *testing.T, path string) string {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestThousandsOfMappings traces a process with tens of thousands of mappings.
func TestThousandsOfMappings(t *testing.T) {
	program := standalone(t)
	path := filepath.Join(t.TempDir(), "many")
	if err := (&lie{count: 2, name: ".x"}).write(path); err != nil {
		t.Fatal(err)
	}
	hostile(t, program, waiting(t, "mapmany", "20000", "300", path), 300)
}
