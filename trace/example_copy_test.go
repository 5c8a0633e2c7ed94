package trace_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"rtrace-bpf/decoder"
	"rtrace-bpf/encoder"
	"rtrace-bpf/trace"
)

// large is a filter: a Reader that passes on the large allocations of another one.
type large struct {
	trace.Reader
	least uint64 // bytes
}

func (f *large) ReadRecord(r *trace.Record) error {
	for {
		if err := f.Reader.ReadRecord(r); err != nil {
			return err
		}
		if r.Kind == trace.KindCall && r.Call.Op != trace.OpFree && r.Call.Size >= f.least {
			return nil
		}
	}
}

// A decoder, a filter of your own and an encoder, one after the other.
func ExampleCopy() {
	in, err := decoder.OpenFile("../testdata/corpus/sp-rtrace/c-leaks.rtrace", decoder.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = in.Close() }() // only read

	out, err := encoder.New("jsonl", os.Stdout, encoder.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := trace.Copy(out, &large{in, 90_000}); err != nil {
		fmt.Println(err)
		return
	}
	if err := out.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"format":"rtrace-jsonl","version":1}
	// {"kind":"call","time":2542936000000,"pid":27147,"seq":19,"op":"alloc","function":"realloc","resource":1,"id":"0x55c9a2267510","size":100000,"stack_end":"unknown","stack":["0x55c9757eb280","0x55c9757eb2c5","0x7f10d7f2424a","0x7f10d7f24305","0x55c9757eb0e1"]}
}

// A whole trace in memory, where every record is the caller's.
func ExampleLoad() {
	in, err := decoder.OpenFile("../testdata/corpus/sp-rtrace/c-leaks.rtrace", decoder.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = in.Close() }() // only read

	records, err := trace.Load(in)
	if err != nil {
		fmt.Println(err)
		return
	}
	largest := slices.MaxFunc(records, func(a, b *trace.Record) int { return cmp.Compare(a.Call.Size, b.Call.Size) })
	fmt.Printf("%d records; the largest block has %d bytes, by %s\n", len(records), largest.Call.Size, largest.Call.Function)
	// Output:
	// 41 records; the largest block has 100000 bytes, by realloc
}
