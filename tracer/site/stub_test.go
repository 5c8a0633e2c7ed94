package site

import "testing"

// Stubs written by linkers: those of Debian 12's libc, of GNU ld for -z force-bti, -z pac-plt and
// -z ibtplt, and near matches.
func TestStub(t *testing.T) {
	tests := map[string]struct {
		arch Arch
		code string
		addr uint64
		want uint64 // 0: no stub
	}{
		"arm64 realloc":      {ARM64, "d0 0b 00 b0 11 02 40 f9 10 02 00 91 20 02 1f d6", 0x27220, 0x1a0000},
		"arm64 second":       {ARM64, "d0 0b 00 b0 11 06 40 f9 10 22 00 91 20 02 1f d6", 0x27230, 0x1a0008},
		"arm64 pad":          {ARM64, "5f 24 03 d5 d0 0b 00 b0 11 02 40 f9 10 02 00 91 20 02 1f d6", 0x27220, 0x1a0000},
		"arm64 signed":       {ARM64, "5f 24 03 d5 d0 0b 00 b0 11 02 40 f9 10 02 00 91 9f 21 03 d5 20 02 1f d6", 0x27220, 0x1a0000},
		"arm64 below":        {ARM64, "f0 ff ff f0 11 02 40 f9 10 02 00 91 20 02 1f d6", 0x27220, 0x26000},
		"arm64 other base":   {ARM64, "d0 0b 00 b0 31 02 40 f9 10 02 00 91 20 02 1f d6", 0x27220, 0},
		"arm64 no load":      {ARM64, "d0 0b 00 b0 10 02 00 91 20 02 1f d6", 0x27220, 0},
		"arm64 call":         {ARM64, "d0 0b 00 b0 11 02 40 f9 10 02 00 91 20 02 3f d6", 0x27220, 0},
		"arm64 cut":          {ARM64, "d0 0b 00 b0 11 02 40 f9 10 02 00 91", 0x27220, 0},
		"arm64 branch alone": {ARM64, "20 02 1f d6", 0x27220, 0},
		"amd64":              {AMD64, "ff 25 7a 2f 00 00 68 00 00 00 00", 0x1000, 0x3f80},
		"amd64 pad":          {AMD64, "f3 0f 1e fa f2 ff 25 75 2f 00 00", 0x1000, 0x3f80},
		"amd64 direct":       {AMD64, "e9 00 00 00 00", 0x1000, 0},
		"amd64 works first":  {AMD64, "53 ff 25 7a 2f 00 00", 0x1000, 0},
		"i386 of a program":  {I386, "ff 25 0c 40 00 00 68 00 00 00 00", 0x1000, 0x400c},
		"i386 of a library":  {I386, "f3 0f 1e fb ff a3 0c 00 00 00", 0x1000, 0x400c},
		"unknown":            {0, "20 02 1f d6", 0x1000, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			slot, ok := Stub(Options{Arch: test.arch, GOT: 0x4000}, code(t, test.code), test.addr)
			if slot != test.want && ok || ok != (test.want != 0) {
				t.Errorf("slot %#x, %v; want %#x", slot, ok, test.want)
			}
		})
	}
}
