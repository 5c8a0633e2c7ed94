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

// The addresses of functions in newly compiled programs are those that package debug/elf
// reads.
func TestFunctionAddress(t *testing.T) {
	dir := t.TempDir()
	source, link := filepath.Join(dir, "prog.cc"), filepath.Join(dir, "link")
	const text = "struct A { int add(int); int add(char); };\nint A::add(int x) { return x; }\nint A::add(char x) { return x + 1; }\n" +
		"extern \"C\" int alone(A *a) { return a->add(1) + a->add('1'); }\nint main() { A a; return alone(&a); }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"-pie", "-no-pie"} {
		program := filepath.Join(dir, "prog"+kind)
		if out, err := exec.Command("gcc", "-O0", kind, "-o", program, source).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		_ = os.Remove(link)
		if err := os.Symlink(program, link); err != nil {
			t.Fatal(err)
		}
		file, err := elf.Open(program)
		if err != nil {
			t.Fatal(err)
		}
		symbols, err := file.Symbols()
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		at := map[string]string{}
		for _, x := range symbols {
			at[x.Name] = fmt.Sprintf("%s:%016x+%016x", program, x.Value, x.Size)
		}
		for _, c := range []struct {
			args, want string
			code       cli.ExitCode
		}{
			{link + " alone", at["alone"] + "\n", cli.OK},
			{program + " main", at["main"] + "\n", cli.OK},
			{program + " A::add(int)", at["_ZN1A3addEi"] + "\n", cli.OK},
			{program + " _ZN1A3addEc", at["_ZN1A3addEc"] + "\n", cli.OK},
			{program + " A::add --all", at["_ZN1A3addEi"] + " A::add(int)\n" + at["_ZN1A3addEc"] + " A::add(char)\n", cli.OK},
			{program + " A::add", "", cli.Failed},
			{program + " alon", "", cli.Failed},
			{program + " add", "", cli.Failed},
		} {
			out, errOut, code := runRtrace("", append([]string{"function-address"}, strings.Fields(c.args)...)...)
			if out != c.want || code != c.code || (errOut == "") != (code == cli.OK) {
				t.Errorf("%s: %q, want %q; %s, exit code %d", c.args, out, c.want, errOut, code)
			}
		}
	}
}
