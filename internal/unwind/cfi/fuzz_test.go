package cfi

import (
	"encoding/binary"
	"errors"
	"testing"

	"rtrace-bpf/trace"
)

// FuzzSection reads arbitrary bytes as a section of either kind and byte order, and checks what
// must be true of whatever it finds.
func FuzzSection(f *testing.F) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, eh := range []bool{true, false} {
			m := &maker{order: order, eh: eh}
			cie := common
			if eh {
				cie = commonAMD64
			}
			at := m.entry(-1, cie...)
			m.fde(at, opAdvance|4, opDefCFAOffset, 16, opOffset|6, 2, opRememberState, opAdvance|9, opDefCFARegister, 6, opAdvance1, 4, opRestoreState)
			m.fde(at, opDefCFAExpr, 2, 0x77, 8, opExpression, 6, 2, 0x76, 0, opAdvance|1, opRestore|6, opDefCFA, 7, 8)
			for machine := range uint8(3) {
				f.Add(m.b, eh, order == binary.AppendByteOrder(binary.BigEndian), machine)
			}
		}
	}
	m := &maker{order: binary.LittleEndian, eh: true, short: true}
	m.fde(m.entry(-1, commonI386...), opAdvance|4, opDefCFAExpr, 3, 0x75, 0x7c, 6, opExpression, 5, 2, 0x75, 0, opSetLoc, 8, 0x10, 0x40, 0)
	f.Add(m.b, true, false, uint8(I386-1))
	f.Fuzz(func(t *testing.T, data []byte, eh, big bool, machine uint8) {
		s := &Section{Machine: Machine(machine%3) + 1, Data: data, Addr: madeAddr, EH: eh, Order: binary.LittleEndian}
		if big {
			s.Order = binary.BigEndian
		}
		in := NewInterpreter(s.Machine, s.Machine.FP(), s.Machine.RA())
		count := 0
		for fde, err := range s.FDEs {
			if count++; count > len(data)/4+1 {
				t.Fatalf("%d entries in %d bytes", count, len(data))
			}
			if err != nil {
				wantSyntax(t, err)
				continue
			}
			checkFDE(t, fde, in)
		}
		checkIndex(t, s)
	})
}

func wantSyntax(t *testing.T, err error) {
	t.Helper()
	if _, ok := errors.AsType[*trace.SyntaxError](err); !ok {
		t.Fatalf("error %v is no *trace.SyntaxError", err)
	}
}

// checkFDE runs an FDE in both ways.
func checkFDE(t *testing.T, f *FDE, in *Interpreter) {
	if f.Start > f.End || f.CIE == nil || f.Start < f.End && f.End-1 > in.machine.highest() {
		t.Fatalf("FDE %+v", f)
	}
	var all []Row
	err := f.Rows(func(r *Row) error {
		if len(all) < 64 {
			all = append(all, *r)
		}
		return nil
	})
	at := f.Start
	for i := range all {
		if all[i].Start != at || all[i].End <= at || all[i].End > f.End {
			t.Fatalf("row %#x to %#x after %#x", all[i].Start, all[i].End, at)
		}
		at = all[i].End
	}
	if err != nil {
		wantSyntax(t, err)
	} else if len(all) < 64 && at != f.End {
		t.Fatalf("rows end at %#x, the function at %#x", at, f.End)
	}
	for i := range all {
		row, err := f.RowAt(all[i].End - 1)
		if err != nil || row.Start != all[i].Start || row.CFA.Offset != all[i].CFA.Offset {
			t.Fatalf("RowAt gives %#x to %#x and %v, Rows gave %#x to %#x", row.Start, row.End, err, all[i].Start, all[i].End)
		}
	}
	n := 0
	other := in.Run(f, func(s *Span) error {
		if n < len(all) {
			r := &all[n]
			fp, ra := &r.Rules[in.machine.FP()], &r.Rules[in.machine.RA()]
			if s.Start != r.Start || s.End != r.End || s.Rules[0].How != fp.How || s.Rules[1].Offset != ra.Offset {
				t.Fatalf("span %+v, row %+v", s, r)
			}
		}
		n++
		return nil
	})
	if (other == nil) != (err == nil) || n < len(all) {
		t.Fatalf("%d spans and %v, %d rows and %v", n, other, len(all), err)
	}
}

func checkIndex(t *testing.T, s *Section) {
	x, err := NewIndex(s)
	if err != nil {
		wantSyntax(t, err)
	}
	for i := range x.fdes {
		f := &x.fdes[i]
		if i > 0 && f.Start <= x.fdes[i-1].Start {
			t.Fatalf("index out of order at %#x", f.Start)
		}
		if got, ok := x.Find(f.Start); !ok || got != f {
			t.Fatalf("Find(%#x) = %v", f.Start, got)
		}
	}
}
