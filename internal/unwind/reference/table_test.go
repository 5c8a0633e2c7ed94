package reference

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"rtrace-bpf/internal/unwind/cfi"
)

// Call frame instructions of DWARF 5, section 6.4.2, for the tables of tests. Offsets of saved
// registers are in units of minus a word.
const (
	cfaUndefined   = 0x07
	cfaSameValue   = 0x08
	cfaRegister    = 0x09
	cfaDefCFA      = 0x0c
	cfaDefCFAExpr  = 0x0f
	cfaExpression  = 0x10
	cfaValOffset   = 0x14
	cfaValExpr     = 0x16
	cfaNegateRA    = 0x2d
	cfaOffset      = 0x80 // and the register
	cfaAdvance     = 0x40 // and the distance
	returnsByAMD64 = 16
	returnsByARM64 = 30
)

// function is a function of a test with its rules.
type function struct {
	start, end uint64
	rules      []byte
	returns    byte // column of the return address; 0: the machine's
	signal     bool
}

// section returns an .eh_frame with one common entry and one function.
func (f *function) section(m cfi.Machine) *cfi.Section {
	augmentation := "zR\x00"
	if f.signal {
		augmentation = "zRS\x00"
	}
	returns := f.returns
	if returns == 0 {
		returns = m.RA()
	}
	entry := func(body []byte) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	cie := []byte{0, 0, 0, 0, 1}
	cie = append(cie, augmentation...)
	cie = entry(append(cie, 1, -byte(m.Word())&0x7f, returns, 1, 4)) // factors 1 and minus a word; addresses of 8 bytes
	fde := binary.LittleEndian.AppendUint32(nil, uint32(len(cie)+4))
	fde = binary.LittleEndian.AppendUint64(fde, f.start)
	fde = binary.LittleEndian.AppendUint64(fde, f.end-f.start)
	fde = entry(append(append(fde, 0), f.rules...))
	return &cfi.Section{Machine: m, Data: append(cie, fde...), EH: true, Order: binary.LittleEndian}
}

func index(t testing.TB, machine elf.Machine, functions ...function) *cfi.Index {
	t.Helper()
	var sections []*cfi.Section
	for i := range functions {
		sections = append(sections, functions[i].section(cfi.MachineOf(machine)))
	}
	x, err := cfi.NewIndex(sections...)
	if err != nil || x.Len() != len(functions) {
		t.Fatalf("%d of %d functions: %v", x.Len(), len(functions), err)
	}
	return x
}

// words is a memory of words by address.
type words map[uint64]uint64

func (w words) Word(addr uint64) (uint64, bool) {
	v, ok := w[addr]
	return v, ok
}

// moduleAt is the load bias of the module of tests, 0x1000000.
const moduleAt = 0x1000000

// unwinding is a test of Unwind. Addresses of code are in the module, whose functions are
// loaded moduleAt above the addresses that they give.
type unwinding struct {
	name      string
	functions []function
	regs      map[uint64]uint64
	memory    words
	options   Options

	frames  []uint64
	end     End
	pointer bool  // a frame-pointer step
	err     error // in the chain of Err
}

func (u *unwinding) run(t *testing.T, machine elf.Machine) {
	t.Helper()
	space, err := NewSpace([]Mapping{
		{moduleAt, moduleAt + 0x100000, Module{Index: index(t, machine, u.functions...), Bias: moduleAt}},
		{0x9000000, 0x9001000, Module{}}, // like JIT code
	})
	if err != nil {
		t.Fatal(err)
	}
	o := u.options
	o.Machine = machine
	if o.Depth == 0 {
		o.Depth = 16
	}
	var regs Registers
	for n, v := range u.regs {
		regs.Set(n, v)
	}
	got := Unwind(regs, u.memory, space, o)
	if !slices.Equal(got.Frames, u.frames) || got.End != u.end || got.FramePointer != u.pointer {
		t.Errorf("%#x, %v, frame pointer %v\nwant %#x, %v, frame pointer %v", got.Frames, got.End, got.FramePointer, u.frames, u.end, u.pointer)
	}
	if whole := u.end == Complete || u.end == Truncated; whole != (got.Err == nil) {
		t.Errorf("%v, but error %v", got.End, got.Err)
	}
	if u.err != nil && !errors.Is(got.Err, u.err) {
		t.Errorf("error %v, want %v", got.Err, u.err)
	}
}
