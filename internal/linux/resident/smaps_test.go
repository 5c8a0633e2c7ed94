package resident

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/linux/proc"
)

// recorded is the beginning of a file of Linux 6.18, with its field order.
const recorded = `55d0c8a5e000-55d0c8a60000 r--p 00000000 fe:00 1310 /usr/bin/a name with blanks
Size:                  8 kB
KernelPageSize:        4 kB
MMUPageSize:           4 kB
Rss:                   8 kB
Pss:                   2 kB
Pss_Dirty:             0 kB
Shared_Clean:          4 kB
Shared_Dirty:          4 kB
Private_Clean:         0 kB
Private_Dirty:         0 kB
Referenced:            8 kB
Anonymous:             0 kB
KSM:                   0 kB
LazyFree:              0 kB
AnonHugePages:         0 kB
ShmemPmdMapped:        0 kB
FilePmdMapped:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:       0 kB
Swap:                  0 kB
SwapPss:               0 kB
Locked:                0 kB
THPeligible:           0
VmFlags: rd mr mw me sd
7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Rss:                4096 kB
Pss:                4096 kB
Anonymous:          4096 kB
AnonHugePages:      2048 kB
Private_Hugetlb:    6144 kB
Swap:                 12 kB
`

func TestParse(t *testing.T) {
	got, err := Parse(strings.NewReader(recorded))
	if err != nil {
		t.Fatal(err)
	}
	want := []Mapping{{
		Map:   proc.Map{Start: 0x55d0c8a5e000, End: 0x55d0c8a60000, Perms: proc.Read, Major: 0xfe, Inode: 1310, Path: "/usr/bin/a name with blanks"},
		Usage: Usage{Resident: 8 << 10, Proportional: 2 << 10, Shared: 8 << 10},
	}, {
		Map:   proc.Map{Start: 0x7f0000000000, End: 0x7f0000400000, Perms: proc.Read | proc.Write},
		Usage: Usage{Resident: 4 << 20, Proportional: 4 << 20, Anonymous: 4 << 20, Huge: 2 << 20, Hugetlb: 6 << 20, Swap: 12 << 10},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	sum := got[0].Usage
	sum.Add(got[1].Usage)
	if sum.Resident != 8<<10+4<<20 || sum.Shared != 8<<10 || sum.Swap != 12<<10 || sum.Hugetlb != 6<<20 {
		t.Errorf("the sum is %+v", sum)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"Rss: 4 kB\n", "10-20 r--p 0 0:0 0\nRss 4 kB\n", "10-20 r--p 0 0:0 0\nRss: 4\n", "10-20 r--p 0 0:0 0\nRss: -4 kB\n",
		"10-20 r--p 0 0:0 0\nRss: 18014398509481984 kB\n", "20-10 r--p 0 0:0 0\n",
	} {
		if _, err := Parse(strings.NewReader(text)); !errors.Is(err, proc.ErrSyntax) {
			t.Errorf("%q: %v, want %v", text, err, proc.ErrSyntax)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(recorded)
	f.Add("10-20 r--p 0 0:0 0\nRss: 4 kB\nShared_Clean: 17179869183 kB\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := Parse(strings.NewReader(text))
		if err == nil && len(all) == 0 && strings.TrimSpace(text) != "" {
			t.Errorf("%q has no mapping and no error", text)
		}
	})
}
