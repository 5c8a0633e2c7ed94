package mptrace

import wire "rtrace-bpf/internal/wire/mtrc"

// Accounts counts the events of one stream. It is a Book of this package or of
// package original.
type Accounts interface {
	// Add counts an event and stores the result in n.
	Add(e *wire.Event, n *Entry)
	// Totals returns the statistics so far. They change with the next Add.
	Totals() *Totals
	// Average returns the average size of an allocation, in bytes.
	Average() uint64
}

// AppendStatistics appends the statistics in the layout of the original tool.
func AppendStatistics(dst []byte, a Accounts) []byte {
	t := a.Totals()
	dst = append(dst, "memory allocation tracing statistics\n------------------------------------\n"...)
	for _, row := range []struct {
		name string
		Sum
	}{
		{"allocated: ", t.Allocated},
		{"freed:     ", t.Freed},
		{"unfreed:   ", t.Live},
		{"peak:      ", t.Peak},
		{"reserved:  ", t.Reserved},
		{"internal:  ", t.Internal},
		{"total:     ", Sum{t.Reserved.Count + t.Internal.Count, t.Reserved.Bytes + t.Internal.Bytes}},
	} {
		dst = appendDecimal(append(dst, row.name...), row.Count, 0)
		dst = append(appendBytes(append(dst, " ("...), row.Bytes), ")\n"...)
	}
	dst = appendBytes(append(dst, "\nsmallest size: "...), t.Smallest)
	dst = appendBytes(append(dst, "\nlargest size:  "...), t.Largest)
	dst = appendBytes(append(dst, "\naverage size:  "...), a.Average())
	return append(dst, '\n')
}

// Average returns the average size of an allocation in bytes, rounded to the
// nearest number, and a half to the even one.
func (b *Book) Average() uint64 {
	t := &b.totals
	if t.Allocated.Count == 0 {
		return 0
	}
	q, r := t.Allocated.Bytes/t.Allocated.Count, t.Allocated.Bytes%t.Allocated.Count
	if rest := t.Allocated.Count - r; r > rest || r == rest && q&1 == 1 {
		q++
	}
	return q
}

func appendBytes(dst []byte, n uint64) []byte {
	dst = appendDecimal(dst, n, 0)
	if n == 1 {
		return append(dst, " byte"...)
	}
	return append(dst, " bytes"...)
}
