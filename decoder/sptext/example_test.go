package sptext_test

import (
	"fmt"
	"strings"

	"rtrace-bpf/decoder/sptext"
	"rtrace-bpf/trace"
)

// Text from the post-processor of sp-rtrace. A line that is nothing else is a comment.
func ExampleNew() {
	const text = `version=2.0, arch=x86_64, timestamp=1.1.2026 12:00:00, process=./demo, pid=42,
1. [12:00:00.500] malloc(100) = 0x1000
	0x401136 parse() at parse.c:12
	0x401180 main() at main.c:30

the parser starts here
2. [12:00:00.600] free(0x1000)
`
	in, err := sptext.New(strings.NewReader(text), sptext.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	records, err := trace.Load(in)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range records {
		switch r.Kind {
		case trace.KindProcess:
			fmt.Println("process", r.PID, r.Process.Name)
		case trace.KindCall:
			fmt.Println(r.Call.Function, r.Call.Size, r.Call.Stack.Names)
		case trace.KindComment:
			fmt.Println("comment:", r.Comment)
		}
	}
	// Output:
	// process 42 ./demo
	// malloc 100 [parse() at parse.c:12 main() at main.c:30]
	// comment: the parser starts here
	// free 0 []
}
