package survey

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/explain"
	"rtrace-bpf/internal/linux/resident"
)

// mapping is one mapping of a made-up process.
type mapping struct {
	start, end uint64
	perms      string
	inode      int
	path       string
	resident   uint64 // bytes
}

// madeUp returns the rows of a process with these mappings, whose program is exe.
func madeUp(t *testing.T, exe string, mappings []mapping) *reading {
	t.Helper()
	var text strings.Builder
	for _, m := range mappings {
		fmt.Fprintf(&text, "%x-%x %s 00000000 fe:01 %d %s\nRss: %d kB\n", m.start, m.end, m.perms, m.inode, m.path, m.resident>>10)
	}
	all, err := resident.Parse(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	r := &reading{space: &space{areas: make([]area, len(all))}, rows: newLedger()}
	for i := range all {
		r.areas[i].Mapping = all[i]
	}
	r.id.identify(r.areas, exe)
	for i := range r.areas {
		r.rest(&r.areas[i])
	}
	return r
}

// The machines of the tests have no .NET. These mappings have the form of its sources: the heap is
// reserved as one range and made accessible in parts, compiled code is a memfd that is mapped
// twice, or executable anonymous memory with DOTNET_EnableWriteXorExecute=0.
func TestDotnet(t *testing.T) {
	const (
		host   = "/usr/share/dotnet/dotnet"
		shared = "/usr/share/dotnet/shared/Microsoft.NETCore.App/8.0.0/"
		code   = "/memfd:doublemapper (deleted)"
	)
	heap := []mapping{
		{0x7e0000000000, 0x7e0004000000, "rw-p", 0, "", 60 * mib},
		{0x7e0004000000, 0x7e4000000000, "---p", 0, "", 0},
		{0x7f0000000000, 0x7f0000400000, "rw-p", 0, "", 3 * mib}, // the table of cards
	}
	program := mapping{0x550000000000, 0x550000010000, "r-xp", 1, host, 64 << 10}
	library := mapping{0x7f1000000000, 0x7f1000700000, "r-xp", 2, shared + "libcoreclr.so", 4 * mib}
	assembly := mapping{0x7f1001000000, 0x7f1001a00000, "r--p", 3, shared + "System.Private.CoreLib.dll", 6 * mib}
	twice := []mapping{
		{0x7f2000000000, 0x7f2000100000, "r-xs", 4, code, mib},
		{0x7f2000200000, 0x7f2000300000, "rw-s", 4, code, mib},
	}
	for _, test := range []struct {
		name     string
		exe      string
		mappings []mapping
		libs     uint64
	}{
		{"W^X", host, append(slices.Concat(heap, twice), program, library, assembly), 4 * mib},
		{"no W^X", host, append(slices.Clone(heap), program, library, assembly, mapping{0x7f3000000000, 0x7f3000200000, "rwxp", 0, "", 2 * mib}), 4 * mib},
		{"single file", "/srv/app", append(slices.Concat(heap, twice), mapping{0x550000000000, 0x550001000000, "r-xp", 5, "/srv/app", 9 * mib}, assembly), 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			slices.SortFunc(test.mappings, func(a, b mapping) int { return int(int64(a.start) - int64(b.start)) })
			r := madeUp(t, test.exe, test.mappings)
			d := &explain.Document{Rows: r.rows.finish()}
			d.Process.Runtimes = r.id.runtimes
			for _, row := range d.Rows {
				d.Resident += row.Resident
			}
			d.Judge()
			leads(t, d, explain.AboutManaged)
			if !slices.Equal(r.id.runtimes, []string{"dotnet"}) {
				t.Errorf("runtimes %v", r.id.runtimes)
			}
			for kind, want := range map[explain.Kind]uint64{
				explain.Managed: 63 * mib, explain.Runtime: 2 * mib, explain.Libraries: test.libs, explain.Files: 6 * mib, explain.Anonymous: 0,
			} {
				if got := sizes(d, kind).resident; got != want {
					t.Errorf("%s: %d bytes, want %d", kind, got, want)
				}
			}
			// The range that is reserved has no memory.
			if size := sizes(d, explain.Managed).size; size != 68*mib {
				t.Errorf("%d bytes of the heap are mapped, want 68 MiB", size)
			}
			if v := d.Verdicts[0]; !strings.Contains(v.Text, ".NET heap") || !strings.Contains(v.Advice, "dotnet-gcdump") {
				t.Errorf("%+v", v)
			}
		})
	}
}
