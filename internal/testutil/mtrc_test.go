package testutil

import (
	"strings"
	"testing"
)

func TestMTRCRules(t *testing.T) {
	const (
		header = "MTRC\x01\x00\x00\x00\x00\x00\x00\x00\x05\x29\x00\x00\x00\x00\x00\x00"
		big    = "MTRC\x00\x00\x00\x01\x00\x00\x28\x3c" // 32-bit, 1.3.0
		alloc  = "A\x01\x10\x05\x07\x81f\x00\xa0f.c\x00\x03"
		end    = "MTRC"
	)
	for _, tt := range []struct {
		name, file, want string // want is empty for a file that breaks no rule
		rules            MTRCRules
	}{
		{name: "all records", file: header + "I\x01\x02H\x00\xff\xff\x03" + alloc + "R\x01\x20\x00\x07\x01\x20\x03F\x01\x00\x00\x00\x00" + alloc + end},
		{name: "streams", file: header + end + big + "A\x01\x10\x05F\x01" + end + header + alloc + end},
		{name: "empty", want: "offset 0: 0 bytes are left, not 4"},
		{name: "no magic", file: "MTRX" + header[4:] + end, want: "magic"},
		{name: "order word", file: "MTRC\x02" + header[5:] + end, want: "order word"},
		{name: "version", file: strings.Replace(header, "\x05\x29", "\x68\x29", 1) + end, want: "version 10600"},
		{name: "no trailer", file: header + alloc, want: "offset 34: 0 bytes are left, not 1"},
		{name: "bad trailer", file: header + "MTRX", want: "trailer"},
		{name: "after the trailer", file: header + end + "junk", want: "magic"},
		{name: "unknown record", file: header + "X" + end, want: "record 'X'"},
		{name: "long number", file: header + "H\x81\x00\x01" + end, want: "number 1 in 2 bytes"},
		{name: "limit", file: header + "H\x80\x02\x01" + end, rules: MTRCRules{Limit: 256}, want: "number 256"},
		{name: "index 0", file: header + strings.Replace(alloc, "\x01", "\x00", 1) + end, want: "A of index 0"},
		{name: "index is live", file: header + alloc + alloc + end, want: "A of index 1, live true"},
		{name: "not live", file: header + "F\x01\x00\x00\x00\x00" + end, want: "F of index 1, live false"},
		{name: "one address", file: header + alloc + "A\x02\x10\x00\x00\x00\x00\x00" + end, want: "A at 0x10"},
		{name: "shared address", file: header + alloc + "A\x02\x10\x00\x00\x00\x00\x00" + end, rules: MTRCRules{Shared: true}},
		{name: "id 0", file: header + "A\x02\x10\x00\x00\x80f\x00\x00\x00" + end, want: "name 0x80"},
		{name: "id 33", file: header + "A\x02\x10\x00\x00\xa1f\x00\x00\x00" + end, want: "name 0xa1"},
		{name: "id of the other table", file: header + "A\x02\x10\x00\x00\x81f\x00\x01\x00" + end, want: "name 0x01,"},
		{name: "empty name", file: header + "A\x02\x10\x00\x00\x81\x00\x00\x00" + end, want: `name ""`},
		{name: "longest name", file: header + "A\x02\x10\x00\x00\x81" + strings.Repeat("n", 1023) + "\x00\x00\x00" + end},
		{name: "long name", file: header + "A\x02\x10\x00\x00\x81" + strings.Repeat("n", 1024) + "\x00\x00\x00" + end, want: "name "},
	} {
		got := fatal(func(r *recorder) { tt.rules.Check(r, []byte(tt.file)) })
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
