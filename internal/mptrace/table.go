package mptrace

import wire "rtrace-bpf/internal/wire/mtrc"

// Table formats a row for each event and, below it, the place that it came
// from.
type Table struct {
	// AddressDigits is the width of addresses: 16, or 8 for 32-bit traces.
	AddressDigits int
	// Sources prints the line below a row.
	Sources bool
	// Raw prints names unchanged, as the original tool does. Otherwise control
	// characters in them, which could end a line or control a terminal, are
	// printed as \x and two hexadecimal digits for each byte.
	Raw bool
}

const rule = "------------------"

// AppendHeading appends the two lines above the rows.
func (t *Table) AppendHeading(dst []byte) []byte {
	column := rule[:2+t.AddressDigits]
	margin := blanks[:(len(column)-len("allocation"))/2]
	dst = append(dst, " event  type     index  "...)
	dst = append(append(append(dst, margin...), "allocation"...), margin...)
	dst = append(dst, "      size    life   count     bytes\n------  ------  ------  "...)
	dst = append(dst, column...)
	return append(dst, "  --------  ------  ------  --------\n"...)
}

// AppendRow appends the row of an event that counts, and its source line.
func (t *Table) AppendRow(dst []byte, n *Entry, from *wire.Source) []byte {
	switch n.Kind {
	case wire.Heap:
		return t.appendMemory(append(dst, "        reserve       "...), n)
	case wire.Internal:
		return t.appendMemory(append(dst, "        internal      "...), n)
	}
	dst = appendDecimal(dst, n.Number, 6)
	switch n.Kind {
	case wire.Alloc:
		dst = append(dst, "  alloc   "...)
	case wire.Realloc:
		dst = append(dst, "  realloc "...)
	case wire.Free:
		dst = append(dst, "  free    "...)
	}
	dst = appendDecimal(dst, n.Index, 6)
	dst = appendAddress(append(dst, "  "...), n.Address, t.AddressDigits)
	dst = appendDecimal(append(dst, "  "...), n.Size, 8)
	if n.Kind == wire.Free {
		dst = appendDecimal(append(dst, "  "...), n.Life, 6)
	} else {
		dst = append(dst, blanks[:8]...)
	}
	dst = appendDecimal(append(dst, "  "...), n.Live.Count, 6)
	dst = appendDecimal(append(dst, "  "...), n.Live.Bytes, 8)
	dst = append(dst, '\n')
	if t.Sources {
		dst = t.appendSource(dst, from)
	}
	return dst
}

// appendMemory appends the rest of the row of an H or I.
func (t *Table) appendMemory(dst []byte, n *Entry) []byte {
	dst = appendAddress(append(dst, "  "...), n.Address, t.AddressDigits)
	dst = appendDecimal(append(dst, "  "...), n.Size, 8)
	return append(dst, '\n')
}

// appendSource appends the line with the place of an event, if anything is
// known about it. A file without a line number is not printed.
func (t *Table) appendSource(dst []byte, from *wire.Source) []byte {
	line := from.File.Known && from.Line != 0
	if from.Thread == 0 && !from.Function.Known && !line {
		return dst
	}
	dst = append(dst, "                       "...)
	if from.Thread != 0 {
		dst = appendDecimal(append(dst, " thread "...), from.Thread, 0)
	}
	if from.Function.Known {
		dst = t.appendName(append(dst, " in "...), from.Function.Text)
	}
	if line {
		dst = t.appendName(append(dst, " at "...), from.File.Text)
		dst = appendDecimal(append(dst, " line "...), from.Line, 0)
	}
	return append(dst, '\n')
}

func (t *Table) appendName(dst []byte, name string) []byte {
	if t.Raw {
		return append(dst, name...)
	}
	return appendPrintable(dst, name)
}
