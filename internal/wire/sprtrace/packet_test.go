package sprtrace

import "testing"

func TestCodes(t *testing.T) {
	// The letter bug of protocol 1.0, as in its traces.
	buggy := map[string]string{
		"PINF": "PIII", "MINF": "MIII", "RESR": "REEE", "CTXR": "CTTT", "MMAP": "MMMM", "CALL": "CAAA",
		"ARGS": "ARRR", "BTRC": "BTTT", "HINF": "HIII", "OCFG": "OCCC", "NLIB": "NLLL",
	}
	for i := range Packets {
		p := &Packets[i]
		if got := Letters(p.Code); got != p.Name {
			t.Errorf("%s: code spells %q", p.Name, got)
		}
		if Lookup(p.Code) != p || LookupName(p.Name) != p {
			t.Errorf("%s: lookup finds another packet", p.Name)
		}
		want, has := buggy[p.Name]
		if !has {
			if p.Buggy() != 0 {
				t.Errorf("%s: has a buggy code, but is newer than the bug", p.Name)
			}
			continue
		}
		if got := Letters(p.Buggy()); got != want {
			t.Errorf("%s: buggy code spells %q, want %q", p.Name, got, want)
		}
		if LookupBuggy(p.Buggy()) != p {
			t.Errorf("%s: lookup by the buggy code finds another packet", p.Name)
		}
		if Lookup(p.Buggy()) != nil {
			t.Errorf("%s: the buggy code collides with a right one", p.Name)
		}
	}
	if len(Packets) != len(buggy)+1 {
		t.Errorf("%d packets, want %d", len(Packets), len(buggy)+1)
	}
	if Lookup(0) != nil || LookupBuggy(0) != nil || LookupName("") != nil {
		t.Error("a lookup of nothing finds a packet")
	}
}

func TestFieldNamesAreUniquePerPacket(t *testing.T) {
	for _, p := range Packets {
		types := map[string]Type{}
		for _, l := range p.Layouts {
			seen := map[string]bool{}
			for _, f := range l.Fields {
				if seen[f.Name] {
					t.Errorf("%s: field %s twice in one layout", p.Name, f.Name)
				}
				seen[f.Name] = true
				if typ, ok := types[f.Name]; ok && typ != f.Type {
					t.Errorf("%s: field %s has two types", p.Name, f.Name)
				}
				types[f.Name] = f.Type
			}
		}
	}
}

func TestLayoutNumbers(t *testing.T) {
	tests := []struct {
		code   uint32
		layout int
		name   string
	}{
		{CALL, CallDocument, "document"}, {ARGS, ArgsTexts, "texts"}, {HINF, HeapNarrow, "narrow"},
	}
	for _, tt := range tests {
		if got := Lookup(tt.code).Layouts[tt.layout].Name; got != tt.name {
			t.Errorf("%s layout %d is %q, want %q", Letters(tt.code), tt.layout, got, tt.name)
		}
	}
}

func TestVersion(t *testing.T) {
	if V14.Major() != 1 || V14.Minor() != 4 || !V14.SizeFirst() {
		t.Errorf("1.4: %d.%d, size first %v", V14.Major(), V14.Minor(), V14.SizeFirst())
	}
	if V20.Major() != 2 || V20.Minor() != 0 || V20.SizeFirst() {
		t.Errorf("2.0: %d.%d, size first %v", V20.Major(), V20.Minor(), V20.SizeFirst())
	}
}

func TestAppendHandshake(t *testing.T) {
	tests := []struct {
		version         Version
		arch            string
		endian, pointer byte
		want            string
	}{
		{V20, "x86_64", LittleEndian, 8, "\xf0\x0e\x02\x00\x06x86_64\x00\x08\x00\x00\x00"},
		{V20, "i686", LittleEndian, 4, "\xf0\x0a\x02\x00\x04i686\x00\x04\x00"},
		{V14, "s390x", BigEndian, 8, "\xf0\x0a\x01\x04\x05s390x\x01\x08"},
	}
	for _, tt := range tests {
		got := AppendHandshake([]byte("x"), tt.version, tt.arch, tt.endian, tt.pointer)
		if string(got) != "x"+tt.want {
			t.Errorf("%s: %q, want %q", tt.arch, got[1:], tt.want)
		}
	}
	long := AppendHandshake(nil, V20, string(make([]byte, MaxArch)), 0, 8)
	if len(long)%4 != 0 || int(long[HandshakeSize]) != len(long)-2 {
		t.Errorf("handshake with the longest name: %d bytes, size %d", len(long), long[HandshakeSize])
	}
}

func TestTextSize(t *testing.T) {
	for length, want := range map[uint16]int{0: 4, 1: 4, 2: 4, 3: 8, 4: 8, 6: 8, 7: 12, 10: 12, 0xffff: 0x10004} {
		if got := TextSize(length); got != want {
			t.Errorf("TextSize(%d) = %d, want %d", length, got, want)
		}
	}
}
