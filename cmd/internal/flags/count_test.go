package flags

import "testing"

func TestCount(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "1": 1, "4000": 4000, "4k": 4000, "100K": 100_000, "2M": 2_000_000, "3g": 3_000_000_000,
		"9223372036854775808": 1 << 63,
	} {
		var c Count
		if err := c.Set(text); err != nil || uint64(c) != want {
			t.Errorf("%s: %d, %v; want %d", text, c, err, want)
		}
	}
	for _, text := range []string{"", "k", "-1", "1.5k", "4Q", "9223372036854775809", "9223372036854775807k", "0x10"} {
		c := Count(7)
		if err := c.Set(text); err == nil || c != 7 {
			t.Errorf("%q is taken as %d", text, c)
		}
	}
	c := Count(4000)
	if none := Count(0); c.String() != "4000" || none.String() != "" || (*Count)(nil).String() != "" {
		t.Errorf("%q, %q", c.String(), none.String())
	}
}
