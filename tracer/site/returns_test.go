package site

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestReturns(t *testing.T) {
	const base = 0x1000
	bounds := func(end uint64) func(uint64) (uint64, bool) {
		return func(addr uint64) (uint64, bool) { return end, addr < end }
	}
	for name, test := range map[string]struct {
		arch    Arch
		code    string
		bounds  func(uint64) (uint64, bool)
		stop    uint64
		want    []uint64
		cost    Cost
		stopped bool
		jumps   []uint64
		conds   []uint64
		calls   []uint64
		err     string
	}{
		// test rdi,rdi; je +1; ret; ret
		"two returns": {arch: AMD64, code: "\x48\x85\xff\x74\x01\xc3\xc3", want: []uint64{base + 5, base + 6}, cost: SingleStep},
		// jmp +2; ud2; repz ret
		"after a jump": {arch: AMD64, code: "\xeb\x02\x0f\x0b\xf3\xc3", want: []uint64{base + 4}, cost: SingleStep},
		// test; jne -5; ret
		"a loop": {arch: AMD64, code: "\x48\x85\xff\x75\xfb\xc3", want: []uint64{base + 5}, cost: SingleStep},
		// je +1; ret; ud2
		"a trap is not an exit": {arch: AMD64, code: "\x74\x01\xc3\x0f\x0b", want: []uint64{base + 2}, cost: SingleStep},
		// call +1; ret; ret: the call is of the second one
		"calls come back": {arch: AMD64, code: "\xe8\x01\x00\x00\x00\xc3\xc3", want: []uint64{base + 5}, cost: SingleStep},
		// call *%rax; ret
		"calls through pointers as well": {arch: AMD64, code: "\xff\xd0\xc3", want: []uint64{base + 2}, cost: SingleStep},
		// je +5; call; ret of the next function
		"a call at the end does not come back": {arch: AMD64, code: "\x74\x01\xc3\xe8\x00\x00\x00\x00\xc3", bounds: bounds(base + 8), want: []uint64{base + 2}, cost: SingleStep},
		"a jump to the end of the bounds goes on": {
			arch: AMD64, code: "\x74\x01\xc3\xeb\x00\xc3", bounds: func(addr uint64) (uint64, bool) { return base + 5, addr < base+5 },
			want: []uint64{base + 2, base + 5}, cost: SingleStep,
		},
		// jmp +0x10, to the stop
		"stops at a jump": {arch: AMD64, code: "\xeb\x10\xc3", stop: base + 0x12, stopped: true, jumps: []uint64{base}, cost: NopOptimised},
		// je to the stop; call of the stop; ret
		"stops at a call": {arch: AMD64, code: "\x74\x10\xe8\x0b\x00\x00\x00\xc3", stop: base + 0x12, stopped: true, conds: []uint64{base}, calls: []uint64{base + 2}, cost: NopOptimised},
		// jne +5; call to the stop; ret; the other path only returns
		"goes by": {arch: AMD64, code: "\x75\x05\xe8\x0b\x00\x00\x00\xc3", stop: base + 0x12, stopped: true, calls: []uint64{base + 2}, want: []uint64{base + 7}, cost: SingleStep},
		// jmp *0x10(%rip), whose slot leads to a function at the end: ret
		"through the GOT": {arch: AMD64, code: "\xff\x25\x0a\x00\x00\x00\xc3", want: []uint64{base + 6}, cost: SingleStep},
		// jmp to the following stub: jmp *0x8(%rip); ret
		"through a PLT stub":        {arch: AMD64, code: "\xeb\x00\xff\x25\x08\x00\x00\x00\xc3", want: []uint64{base + 8}, cost: SingleStep},
		"stops after a PLT stub":    {arch: AMD64, code: "\xeb\x00\xff\x25\x08\x00\x00\x00\xc3", stop: base + 8, stopped: true, jumps: []uint64{base}, cost: NopOptimised},
		"a jump through a pointer":  {arch: AMD64, code: "\xff\xe0", err: "jumps through a pointer at 0x1000"},
		"a jump through a slot":     {arch: AMD64, code: "\xff\x25\x00\x00\x00\x00", err: "jumps through a pointer at 0x1000"},
		"a jump out of the library": {arch: AMD64, code: "\xe9\x00\x10\x00\x00", err: "leads to 0x2005"},
		"the end of the code":       {arch: AMD64, code: "\x90", err: "leads to 0x1001"},
		"no code":                   {arch: AMD64, code: "\x06\xc3", err: "unknown instruction at 0x1000"},
		// stdcall's ret 4 is a return; 32-bit
		"386": {arch: I386, code: "\x85\xc0\x74\x01\xc3\xc2\x04\x00", want: []uint64{base + 4, base + 5}, cost: SingleStep},
		// cbz x0, +8; ret; bl +4 ; ret
		"arm64": {arch: ARM64, code: "\x40\x00\x00\xb4\xc0\x03\x5f\xd6\x01\x00\x00\x94\xc0\x03\x5f\xd6", want: []uint64{base + 4, base + 12}, cost: Emulated},
		// blr x8; ret
		"arm64, a call through a register": {arch: ARM64, code: "\x00\x01\x3f\xd6\xc0\x03\x5f\xd6", want: []uint64{base + 4}, cost: Emulated},
		// br x8
		"arm64, a jump through a register": {arch: ARM64, code: "\x00\x01\x1f\xd6", err: "jumps through a pointer"},
		// retaa
		"arm64, a return that authenticates": {arch: ARM64, code: "\xff\x0b\x5f\xd6", err: "cannot be probed"},
		// cbz x0, +8; ret; brk #0
		"arm64, a trap": {arch: ARM64, code: "\x40\x00\x00\xb4\xc0\x03\x5f\xd6\x00\x00\x20\xd4", want: []uint64{base + 4}, cost: Emulated},
	} {
		t.Run(name, func(t *testing.T) {
			f := Flow{Entry: base, Code: []byte(test.code), Base: base, Bounds: test.bounds}
			f.Slot = func(addr uint64) (uint64, bool) {
				return base + uint64(len(test.code)) - 1, addr == base+16
			}
			if test.stop != 0 {
				f.Stop = func(target uint64, _ bool) bool { return target == test.stop }
			}
			got, err := Returns(Options{Arch: test.arch}, f)
			if test.err != "" {
				if !errors.Is(err, ErrFlow) || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error %v, want %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Returns, test.want) || got.Cost != test.cost || got.Stopped != test.stopped ||
				!slices.Equal(got.Jumps, test.jumps) || !slices.Equal(got.Conds, test.conds) || !slices.Equal(got.Calls, test.calls) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Endless code is not followed endlessly.
func TestReturnsAreBounded(t *testing.T) {
	code := make([]byte, 1<<16)
	for i := range code {
		code[i] = 0x90
	}
	if _, err := Returns(Options{Arch: AMD64}, Flow{Code: code}); !errors.Is(err, ErrFlow) {
		t.Errorf("error %v", err)
	}
}

func TestBehindNull(t *testing.T) {
	const base = 0x1000
	for name, test := range map[string]struct {
		arch Arch
		code string
		want uint64
	}{
		// test rdi,rdi; je +1; push rbx; ret
		"checked": {AMD64, "\x48\x85\xff\x74\x01\x53\xc3", base + 5},
		// test rsi,rsi; je +1; push rbx; ret
		"another argument": {AMD64, "\x48\x85\xf6\x74\x01\x53\xc3", base},
		// test rdi,rdi; jne +1; push rbx; ret
		"the other way": {AMD64, "\x48\x85\xff\x75\x01\x53\xc3", base},
		// jmp +0x10
		"a jump": {AMD64, "\xeb\x10", base},
		// cbz x0, +8; b +4
		"arm64": {ARM64, "\x40\x00\x00\xb4\x01\x00\x00\x14", base + 4},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := AfterNullCheck(Options{Arch: test.arch}, Function{Name: "delete", Entry: base, Code: []byte(test.code), Args: []int{0}})
			if err != nil || got != test.want {
				t.Errorf("%#x, %v, want %#x", got, err, test.want)
			}
		})
	}
}
