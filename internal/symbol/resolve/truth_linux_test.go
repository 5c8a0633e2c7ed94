package resolve

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

func run(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(testutil.Installed(t, args[0]), args[1:]...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, errs.Bytes())
	}
	return string(out)
}

// running is what a program printed about itself.
type running struct {
	functions map[string]uint64
	maps      []proc.Map
}

// launch compiles testdata/truth.c and runs it.
func launch(t *testing.T, dynamic bool, library []string, flags ...string) (prog string, r running) {
	t.Helper()
	dir := t.TempDir()
	prog = filepath.Join(dir, "truth")
	flags = append([]string{"gcc", "-o", prog, "testdata/truth.c"}, flags...)
	args := []string{prog}
	if dynamic {
		lib := filepath.Join(dir, "libtruth.so")
		run(t, append([]string{"gcc", "-shared", "-fPIC", "-DLIBRARY", "-o", lib, "testdata/truth.c"}, library...)...)
		flags, args = append(flags, "-DDYNAMIC"), append(args, lib)
	}
	run(t, flags...)
	functions, maps, ok := strings.Cut(run(t, args...), "-\n")
	if !ok {
		t.Fatal("no mappings")
	}
	r.functions = map[string]uint64{}
	for line := range strings.Lines(functions) {
		var (
			name string
			addr uint64
		)
		if _, err := fmt.Sscanf(line, "%s 0x%x\n", &name, &addr); err != nil {
			t.Fatal(line, err)
		}
		r.functions[name] = addr
	}
	var err error
	if r.maps, err = proc.ParseMaps(strings.NewReader(maps)); err != nil {
		t.Fatal(err)
	}
	return prog, r
}

// conventions are the ways in which formats describe executable mappings.
var conventions = map[string]func(m, first *proc.Map, fixed bool) trace.Mapping{
	"exact": func(m, first *proc.Map, fixed bool) trace.Mapping {
		base := m.Start - m.Offset
		if fixed {
			base = m.Start
		}
		return trace.Mapping{Start: m.Start, End: m.End, Offset: m.Offset, Base: base, Path: m.Path}
	},
	"segment start": func(m, _ *proc.Map, _ bool) trace.Mapping {
		return trace.Mapping{Start: m.Start, End: m.End, Path: m.Path}
	},
	"load base": func(m, first *proc.Map, fixed bool) trace.Mapping {
		if fixed {
			first = m
		}
		return trace.Mapping{Start: first.Start, End: m.End, Path: m.Path}
	},
}

// TestTruth compares the names of addresses with what a running program prints about
// itself, for all ways to link and to describe mappings.
func TestTruth(t *testing.T) {
	for _, tt := range []struct {
		name    string
		dynamic bool
		library []string
		flags   []string
		// unsure is a convention in which the program's mappings fit several of its
		// segments. There must be no names then, rather than wrong ones.
		unsure string
	}{
		{"pie", true, nil, []string{"-pie", "-fPIE"}, ""},
		{"no-pie", true, []string{"-O2"}, []string{"-no-pie"}, ""},
		{"noseparate", true, []string{"-Wl,-z,noseparate-code"}, []string{"-Wl,-z,noseparate-code"}, ""},
		{"noseparate no-pie", true, nil, []string{"-no-pie", "-Wl,-z,noseparate-code"}, ""},
		{"gold", true, []string{"-fuse-ld=gold"}, []string{"-fuse-ld=gold", "-pie", "-fPIE"}, ""},
		{"big pages", true, []string{"-Wl,-z,max-page-size=0x200000"}, []string{"-Wl,-z,max-page-size=0x10000"}, ""},
		{"code apart from its offset", true, []string{"-Wl,-Ttext-segment=0x10000"}, []string{"-Wl,--section-start=.text=0x200000"}, "segment start"},
		{"static", false, nil, []string{"-static"}, ""},
		{"static pie", false, nil, []string{"-static-pie", "-fPIE"}, ""},
		{"i386 pie", true, []string{"-m32"}, []string{"-m32", "-pie", "-fPIE"}, ""},
		{"i386 no-pie", true, []string{"-m32", "-O2"}, []string{"-m32", "-no-pie"}, ""},
		{"i386 static", false, nil, []string{"-m32", "-static"}, ""},
	} {
		if runtime.GOARCH != "amd64" && slices.Contains(tt.flags, "-m32") {
			continue // a compiler for amd64
		}
		t.Run(tt.name, func(t *testing.T) {
			if slices.Contains(tt.flags, "-m32") {
				testutil.Need32Bit(t)
			}
			prog, r := launch(t, tt.dynamic, tt.library, tt.flags...)
			f, err := symbol.Open(prog)
			if err != nil {
				t.Fatal(err)
			}
			fixed := f.Fixed()
			f.Close()
			for name, describe := range conventions {
				t.Run(name, func(t *testing.T) {
					resolver := New(Options{})
					first := map[uint64]*proc.Map{}
					for i := range r.maps {
						m := &r.maps[i]
						if first[m.Inode] == nil {
							first[m.Inode] = m
						}
						if m.Perms&proc.Exec != 0 && m.File() {
							resolver.Observe(&trace.Record{Kind: trace.KindMapping, Mapping: describe(m, first[m.Inode], fixed && m.Path == prog)})
						}
					}
					for want, addr := range r.functions {
						got, module, ok := resolver.Name(addr + 1)
						if name == tt.unsure && module == prog {
							if got != "" || resolver.Stats().Unplaced == 0 {
								t.Errorf("%#x is %s, but could be another", addr, got)
							}
							continue
						}
						if got != want || !ok {
							t.Errorf("%#x is %q from %q, %v, want %s", addr, got, module, ok, want)
						}
						if got, want := resolver.Text(addr+1), want+"() from "+module; got != want {
							t.Errorf("%#x is printed %q, want %q", addr, got, want)
						}
						if text := resolver.Text(addr); text == resolver.Text(addr+1) {
							t.Errorf("the return address before %#x is %q, too", addr, text)
						}
					}
					if s := resolver.Stats(); s != (Stats{}) && name != tt.unsure {
						t.Errorf("%+v", s)
					}
				})
			}
		})
	}
}

// TestVDSO names the kernel's code in every process, if the traced kernel was this one.
func TestVDSO(t *testing.T) {
	f, err := openVDSO()
	if err != nil {
		t.Skip("SKIP:", err)
	}
	sym, ok := f.Defined("__vdso_clock_gettime")
	if !ok {
		sym, ok = f.Defined("__kernel_clock_gettime") // arm64
	}
	if !ok || f.BuildID() == "" {
		t.Fatalf("vdso without clock_gettime or build ID %q", f.BuildID())
	}
	const start = 0x7fff00000000
	mapping := trace.Record{Kind: trace.KindMapping, Mapping: trace.Mapping{Start: start, End: start + 0x4000, Base: start, Path: vdsoName}}
	for _, tt := range []struct {
		buildID, want string
		mismatched    int
	}{
		{strings.ToUpper(f.BuildID()), "clock_gettime", 0},
		{"", "", 0},
		{"0123", "", 1},
	} {
		r := New(Options{})
		if tt.buildID != "" {
			r.Observe(&trace.Record{Kind: trace.KindModule, Module: trace.Module{Path: vdsoName, BuildID: tt.buildID}})
		}
		r.Observe(&mapping)
		name, module, ok := r.Name(start + sym.Addr + 1)
		if strings.TrimPrefix(strings.TrimPrefix(name, "__vdso_"), "__kernel_") != tt.want || module != vdsoName || !ok {
			t.Errorf("build ID %q: got %q from %q, %v, want %q", tt.buildID, name, module, ok, tt.want)
		}
		if got := r.Stats().Mismatched; got != tt.mismatched {
			t.Errorf("build ID %q: %d files mismatched", tt.buildID, got)
		}
	}
}
