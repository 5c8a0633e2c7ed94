package tables

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/object"
)

// Files without a table, for whatever reason, are mappings without rows. A second look
// does not repeat the warning.
func TestSpaceOfFilesWithoutTable(t *testing.T) {
	program := contents(t, testutil.Build(t, "plugs", "-shared", "-fPIC", "-g0"))
	for name, test := range map[string]struct {
		content        []byte
		warned, logged string
	}{
		"no ELF":          {bytes.Repeat([]byte("text\n"), 2000), "", "no unwind table of"},
		"broken frames":   {brokenFrames(t, program), "no unwind table of", ""},
		"half a file":     {program[:frames(t, program).Offset], "no unwind table of", ""},
		"without a table": {withoutFrames(t), "", ": 0 rows"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFiles(t)
			path := filepath.Join(t.TempDir(), "code")
			if err := os.WriteFile(path, test.content, 0o755); err != nil {
				t.Fatal(err)
			}
			m := f.mapFile(path, 0)
			f.look(true)
			if p := f.at(f.space, m); p != (object.ProbeMapping{Start: m.Start, End: m.End}) {
				t.Errorf("the programs see %+v", p)
			}
			f.mapFile(path, 0)
			f.look(true)
			f.expectLines(f.warned, test.warned, path)
			f.expectLines(f.logged, test.logged, path)
			if len(f.warned) > 1 {
				t.Errorf("warned again: %q", f.warned)
			}
			if f.gone(); f.tables.next != 0 {
				t.Errorf("%d slots were used", f.tables.next)
			}
		})
	}
}

// expectLines fails the test unless there are lines, all of which contain path and text.
// If text is empty, there must be no lines.
func (f *files) expectLines(lines []string, text, path string) {
	f.t.Helper()
	if (len(lines) > 0) != (text != "") {
		f.t.Errorf("got %q, want %q", lines, text)
	}
	for _, line := range lines {
		if !strings.Contains(line, text) || !strings.Contains(line, path) {
			f.t.Errorf("got %q, want %q", line, text)
		}
	}
}

// brokenFrames returns library with frame information that claims to be longer than the
// file.
func brokenFrames(t *testing.T, library []byte) []byte {
	t.Helper()
	broken := slices.Clone(library)
	copy(broken[frames(t, library).Offset:], []byte{0xf0, 0xff, 0xff, 0x7f})
	return broken
}

// frames returns the .eh_frame section of a library.
func frames(t *testing.T, library []byte) *elf.Section {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(library))
	if err != nil {
		t.Fatal(err)
	}
	s := f.Section(".eh_frame")
	if s == nil {
		t.Fatal("the library has no .eh_frame")
	}
	return s
}

// withoutFrames returns a library compiled and linked without call frame information.
func withoutFrames(t *testing.T) []byte {
	flags := append([]string{"-shared", "-fPIC", "-nostdlib"}, testutil.WithoutTables...)
	return contents(t, testutil.Build(t, "plugs", append(flags, testutil.WithoutLinkerTables()...)...))
}
