package mtrc_test

import (
	"fmt"
	"os"

	"rtrace-bpf/decoder/mtrc"
)

// The events of a file, one line each. Undump restores the file from this text.
func ExampleDump() {
	f, err := os.Open("../../testdata/corpus/mpatrol/handmade/h_dupindex.trace")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = f.Close() }() // only read
	if err := mtrc.Dump(os.Stdout, f, mtrc.Options{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 00000000    20 HEADER words=8 endian=little version=10501
	// 00000014     9 A index=1 address=0x1000 size=10 thread=0 function=0 file=0 line=0
	// 0000001d     9 A index=1 address=0x2000 size=20 thread=0 function=0 file=0 line=0
	// 00000026     6 F index=1 thread=0 function=0 file=0 line=0
	// 0000002c     4 TRAILER
}
