package swap_test

import (
	"fmt"
	"os"

	"rtrace-bpf/decoder/swap"
)

// A message, field by field. Undump restores the file from this text.
func ExampleDump() {
	f, err := os.Open("../../testdata/corpus/swap/app_setup_stage.bin")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = f.Close() }() // only read
	damaged, err := swap.Dump(os.Stdout, f, swap.Options{})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(damaged, "damaged messages")
	// Output:
	// 00000000     0 SWAP messages
	// 00000000    44 APP_SETUP_STAGE seq=31 time=1700000000.123456000 pid=4321 stage=2 begin=1700000000.000001000 end=1700000001.000002000
	// 0 damaged messages
}
