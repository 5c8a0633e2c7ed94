package unwind

import "testing"

// TestStartsContext has the code of Debian 12's libc, and near matches.
func TestStartsContext(t *testing.T) {
	const mov, toSetcontext, toExit = "\xe0\x03\x13\xaa", "\xc0\xf9\xff\xb5", "\x52\xf5\xff\x17"
	tests := map[string]struct {
		code string
		want bool
	}{
		"nop":            {"\x1f\x20\x03\xd5" + mov + toSetcontext + toExit, true},
		"landing pad":    {"\x5f\x24\x03\xd5" + mov + toSetcontext + toExit, true},
		"other register": {"\x1f\x20\x03\xd5" + "\xe0\x03\x14\xaa" + toSetcontext + toExit, false},
		"a call":         {"\x1f\x20\x03\xd5" + mov + toSetcontext + "\x52\xf5\xff\x97", false},
		"32 bits":        {"\x1f\x20\x03\xd5" + mov + "\xc0\xf9\xff\x35" + toExit, false},
		"short":          {mov + toSetcontext + toExit, false},
	}
	for name, test := range tests {
		if got := startsContext([]byte(test.code)); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
