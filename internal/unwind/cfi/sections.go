package cfi

import (
	"errors"
	"fmt"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/trace"
)

// fewEntries is a number of FDEs. If .eh_frame has fewer, the compiler wrote none there, and
// those present come from the start files of the C library.
const fewEntries = 8

// Sections returns the call frame information of an ELF file: .eh_frame and, if that has next
// to nothing, .debug_frame of the file or of its separate debug file. There may be none. The
// caller owns the result; the file may be closed.
func Sections(f *symbol.File) ([]*Section, error) {
	m := MachineOf(f.Machine())
	if m == 0 || f.Class() != 8*m.Word() {
		err := fmt.Errorf("call frame information of %v with %d-bit addresses: %w", f.Machine(), f.Class(), trace.ErrUnsupported)
		return nil, &trace.SyntaxError{Format: "elf", Err: err}
	}
	var all []*Section
	var errs []error
	add := func(frames symbol.Frames, err error) *Section {
		s := &Section{
			Machine: m, Data: frames.Data, Addr: frames.Addr, EH: frames.EH, Order: f.Order(),
			TextBase: frames.Text, DataBase: frames.Got,
		}
		if err != nil {
			errs = append(errs, err)
		}
		if len(s.Data) > 0 {
			all = append(all, s)
		}
		return s
	}
	if eh := add(f.EHFrame()); eh.few() {
		add(f.DebugFrame())
	}
	return all, errors.Join(errs...)
}

// few reports whether the section has fewer than fewEntries.
func (s *Section) few() bool {
	n := 0
	for _, err := range s.FDEs {
		if err == nil {
			n++
		}
		if n == fewEntries {
			return false
		}
	}
	return true
}
