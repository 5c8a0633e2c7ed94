package site_test

import (
	"fmt"

	"rtrace-bpf/tracer/site"
)

// The beginning of free in glibc: test %rdi,%rdi; je; push %rbp.
func ExampleChoose() {
	free := site.Function{
		Name:     "free",
		Entry:    0x98ef0,
		Code:     []byte{0x48, 0x85, 0xff, 0x0f, 0x84, 0xbf, 0x00, 0x00, 0x00, 0x55, 0x48, 0x8d, 0x77, 0xf0},
		Args:     []int{0},
		SkipNull: true,
	}
	s, err := site.Choose(site.Options{Arch: site.AMD64}, free)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("free+%d: %s, %s, block in register %d\n", s.Offset, s.Insn, s.Cost, s.Args[0].Reg)
	for _, c := range s.Candidates {
		fmt.Printf("  +%d %s: %s\n", c.Offset, c.Insn, c.Verdict)
	}
	// Output:
	// free+9: push %rbp, emulated, block in register 7
	//   +0 test %rdi,%rdi: +3 costs less
	//   +3 je 0x98fb8: +9 is not hit with null
	//   +9 push %rbp: chosen
	//   +10 lea -0x10(%rdi),%rsi: +9 costs less
}
