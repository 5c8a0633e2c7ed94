package lines

import (
	"debug/dwarf"
	"debug/elf"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/testutil"
)

const structures = `
struct inner { char c; double d; };
struct outer { short a; struct inner in; struct { int x, y; } nameless; int list[7]; struct outer *next; };
struct empty { };
static struct outer first;
int main(void) { struct local { int a; long b; } l = { 0, 0 }; struct empty e; (void)e; first.a = (short)l.b; return first.a; }
`

// Members have the offsets that package dwarf reads.
func TestStructures(t *testing.T) {
	for _, flags := range [][]string{{"-g", "-gdwarf-5"}, {"-g", "-gdwarf-4"}} {
		path := testutil.BuildText(t, structures, flags...)
		f, err := symbol.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, err := Read(f, MaxSize)
		if err != nil {
			t.Fatal(err)
		}
		got := Structures(info, "inner", "outer", "local", "missing")
		want := describedStructures(t, path, "inner", "outer", "local")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: (-want +got)\n%s", flags, diff)
		}
		if len(want["outer"]) != 5 || len(want["local"]) != 2 {
			t.Errorf("%v: package dwarf finds %v", flags, want)
		}
	}
}

// describedStructures reads the same offsets with package dwarf.
func describedStructures(t *testing.T, path string, names ...string) map[string]map[string]uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]uint64{}
	for r := data.Reader(); ; {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			return all
		}
		if e.Tag != dwarf.TagStructType {
			continue
		}
		typ, err := data.Type(e.Offset)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if s, ok := typ.(*dwarf.StructType); ok && s.StructName == name {
				all[name] = map[string]uint64{}
				for _, member := range s.Field {
					all[name][member.Name] = uint64(member.ByteOffset)
				}
			}
		}
	}
}
