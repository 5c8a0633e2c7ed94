package naming

import (
	"debug/elf"
	"fmt"
	"strings"
	"testing"

	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// A frame has the offset in its function, according to the file's symbols, and its line.
func TestPlaceFrames(t *testing.T) {
	e := run(t)
	file, err := elf.Open(e.path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	var main elf.Symbol
	for _, s := range symbols {
		if s.Name == "main" {
			main = s
		}
	}
	resolver := e.root.withLines()
	p := &Places{root: e.root, resolver: resolver, callers: resolve.NewCallers(nil, resolver, resolve.Program.Wrappers())}
	want := ""
	for i := range e.records {
		p.Observe(&e.records[i])
		m := &e.records[i].Mapping
		for _, s := range file.Progs {
			if m.Path == e.path && s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 && m.Start <= e.frame && e.frame < m.End {
				want = fmt.Sprintf("main+%#x", e.frame-(m.Start-m.Offset+s.Off)-(main.Value-s.Vaddr))
			}
		}
	}
	at := p.Find(e.pid, &trace.Stack{Frames: []uint64{e.frame, 0x10}})
	if len(at.Frames) != 2 || at.At != 0 || at.Frames[0].Function != "main" || at.Frames[0].Offset != want ||
		!strings.HasSuffix(at.Frames[0].Line, fmt.Sprintf(".c:%d", e.line)) || at.Frames[1].Offset != "0x10" {
		t.Errorf("%+v, want the offset %s", at, want)
	}
}
