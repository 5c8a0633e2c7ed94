package main

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
)

// TestLeaksNames names places in a newly compiled program.
func TestLeaksNames(t *testing.T) {
	dir := t.TempDir()
	source, program := filepath.Join(dir, "prog.c"), filepath.Join(dir, "prog")
	const text = "int one(void)\n{ return 1; }\n\nint two(void)\n{ return 2; }\nint main(void) { return one() + two(); }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-g", "-O0", "-no-pie", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	inside := map[string]uint64{} // return addresses
	for _, s := range symbols {
		inside[s.Name] = s.Value + 5
	}
	code := f.Section(".text")
	trace := fmt.Sprintln(`{"format":"rtrace-jsonl","version":1}`)
	trace += fmt.Sprintf(`{"kind":"module","path":%q,"fixed":true}`+"\n", program)
	trace += fmt.Sprintf(`{"kind":"mapping","start":"0x%x","end":"0x%x","path":%q}`+"\n", code.Addr, code.Addr+code.Size, program)
	for i, name := range []string{"one", "two", "one"} {
		trace += fmt.Sprintf(`{"kind":"call","seq":%d,"op":"alloc","id":"0x%x","size":%d,"stack_end":"complete","stack":["0x%x","0x%x"]}`+"\n",
			i+1, 16*(i+1), i+1, inside[name], inside["main"])
	}
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"leaks -r --by line", []string{"    4  66.67       2  one at prog.c:2", "    2  33.33       1  two at prog.c:5"}},
		{"leaks -r --by file", []string{"    6  100.00       3  " + source}},
		{"leaks -r --by function", []string{"    4  66.67       2  one from " + program, "    2  33.33       1  two from " + program}},
		{"leaks -r -n 2 --by stack", []string{"    4  66.67       2  one at prog.c:2", "                      main at prog.c:6"}},
		{"leaks -r --by line --lines=false", []string{"    4  66.67       2  one at prog.c:2"}},
		{"leaks -r --by line --skip one", []string{"    4  66.67       2  main at prog.c:6", "    2  33.33       1  two at prog.c:5"}},
		// The trace does not identify the program: its names are not certain.
		{"leaks --by function", []string{"       2  prog+0x", "       1  prog+0x"}},
		{"leaks --by function --no-resolve", []string{"       2  prog+0x", "       1  prog+0x"}},
		{"leaks --by module", []string{"    6  100.00       3  " + program}},
		{"mprof -r -v", []string{" main [1]\n", " one [2]\n", " two [3]\n"}},
	} {
		out, errOut, code := runRtrace(trace, strings.Fields(tt.args)...)
		if code != cli.OK {
			t.Fatal(code, errOut)
		}
		for _, want := range tt.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s lacks %q:\n%s", tt.args, want, out)
			}
		}
	}
}
