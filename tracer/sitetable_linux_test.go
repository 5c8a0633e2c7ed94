package tracer

import (
	"maps"
	"os"
	"testing"
)

// Sites have the address within the page for a key where it is the only one of
// the program, else their distance from the code.
func TestSiteTable(t *testing.T) {
	page := uint64(os.Getpagesize())
	p := Plan{
		functions: []Function{
			{Probe: Probe{distance: 5*page + 0x10, site: 1}},
			{Probe: Probe{distance: 7*page + 0x20, site: 2}},
			{Probe: Probe{distance: 9*page + 0x20, site: 3}},
			{Probe: Probe{distance: 9*page + 0x30, site: 4}},
		},
		growths: []Growth{
			// At the same address as a function's site, and as each other.
			{Call: Probe{distance: 9*page + 0x30, site: 5}, Result: Probe{distance: 9*page + 0x34}},
			{Call: Probe{distance: 9*page + 0x34, site: 6}, Result: Probe{distance: 10*page + 0x34, site: 7}},
		},
	}
	const enter, grow, grown = 0, 1, 2
	want := map[uint64]uint64{
		0x10<<2 | enter:                          1,
		(7*page+0x20)<<2 | enter | siteDistance:  2,
		(9*page+0x20)<<2 | enter | siteDistance:  3,
		0x30<<2 | enter:                          4,
		0x30<<2 | grow:                           5,
		0x34<<2 | grow:                           6,
		(9*page+0x34)<<2 | grown | siteDistance:  0,
		(10*page+0x34)<<2 | grown | siteDistance: 7,
	}
	if got := p.siteTable(); !maps.Equal(got, want) {
		t.Errorf("got  %#x\nwant %#x", got, want)
	}
}
