package plan

import (
	"maps"
	"os"
	"testing"
)

// The key of a site is its address within the page if no other site of the program has the
// same, else its distance from the code.
func TestSiteTable(t *testing.T) {
	page := uint64(os.Getpagesize())
	l := newLayout(&Memory{
		Functions: []Function{
			{Probe: Probe{Distance: 5*page + 0x10, Site: 1}},
			{Probe: Probe{Distance: 7*page + 0x20, Site: 2}},
			{Probe: Probe{Distance: 9*page + 0x20, Site: 3}},
			{Probe: Probe{Distance: 9*page + 0x30, Site: 4}},
		},
		Growths: []Growth{
			// At the same address as a function's site, and as each other.
			{Call: Probe{Distance: 9*page + 0x30, Site: 5}, Result: Probe{Distance: 9*page + 0x34}},
			{Call: Probe{Distance: 9*page + 0x34, Site: 6}, Result: Probe{Distance: 10*page + 0x34, Site: 7}},
		},
	}, nil, SitesAddress, false)
	const enter, grow, grown = 0, 1, 2
	want := map[uint64]uint64{
		0x10<<3 | enter:                          1,
		(7*page+0x20)<<3 | enter | SiteDistance:  2,
		(9*page+0x20)<<3 | enter | SiteDistance:  3,
		0x30<<3 | enter:                          4,
		0x30<<3 | grow:                           5,
		0x34<<3 | grow:                           6,
		(9*page+0x34)<<3 | grown | SiteDistance:  0,
		(10*page+0x34)<<3 | grown | SiteDistance: 7,
	}
	if got := l.SiteTable(); !maps.Equal(got, want) {
		t.Errorf("got  %#x\nwant %#x", got, want)
	}
}
