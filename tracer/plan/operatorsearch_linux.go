package plan

import (
	"os"

	"rtrace-bpf/tracer/process"
)

// operatorSearch looks for the C++ operators that call an allocator and give their names to
// those calls by probes of their own, and adds them to a Memory.
type operatorSearch struct {
	options *Options
	target  *process.Target
	found   *Memory
}

// look finds the operators of the C++ library, and the program's own. With dynamic linking
// the definition in any file may be the one that is called, so all of them get a probe, at
// the entry only. If an operator cannot be probed, its calls have the name of the
// allocator's function.
func (s *operatorSearch) look(sites Sites) error {
	if s.options.Operators != OperatorsAll {
		return nil
	}
	maps, err := s.target.Mappings()
	if err != nil {
		return err
	}
	rows := OperatorModule(s.target.Machine.Word)
	seen := map[process.FileID]bool{}
	files := 0
	for _, m := range maps {
		if m.Inode == 0 || seen[m.ID()] || hasNamesOfC(s.found.Allocators, m.ID()) {
			continue
		}
		seen[m.ID()] = true
		lib, found := s.defines(m, rows)
		if lib == nil {
			continue
		}
		if files++; files > maxOperatorFiles {
			s.options.Warnf("calls of the operators of %s have the allocator's names: operators of at most %d files are probed", m.Path, maxOperatorFiles)
		} else {
			s.addFile(lib, found)
		}
		_ = lib.file.Close() // it was only read
	}
	if sites == SitesAddress {
		leaveOutAmbiguous(s.found.Operators, s.options.Warnf)
	}
	return nil
}

// defines returns the operators that the file of a mapping exports, and the file, which the
// caller closes. It returns nil if there are none.
func (s *operatorSearch) defines(m process.Mapping, rows []Row) (*library, []Function) {
	f, path, err := s.target.Open(m)
	if err != nil || f == nil {
		return nil, nil // not an ELF file: data that is mapped executable
	}
	var found []Function
	if f.Machine() == s.target.Machine.ELF {
		found = operatorsIn(rows, f.Exported)
	}
	if len(found) == 0 {
		_ = f.Close() // it was only read
		return nil, nil
	}
	return &library{mapping: m, path: path, file: f}, found
}

// addFile adds the operators of a file.
func (s *operatorSearch) addFile(lib *library, found []Function) {
	c, err := newCode(s.target.Machine, lib, 0, found)
	if err != nil {
		s.options.Warnf("calls of the operators of %s have the allocator's names: %v", lib.mapping.Path, err)
		return
	}
	s.add(c, found)
}

// add chooses a site for each operator, and adds it, if the options ask for probes on operators.
func (s *operatorSearch) add(c *code, operators []Function) {
	if s.options.Operators != OperatorsAll {
		return
	}
	for _, op := range operators {
		number := len(s.found.Functions) + len(s.found.Operators)
		if number >= maxFunctions {
			s.options.Warnf("calls of %s of %s have the allocator's names: at most %d functions and operators are probed", op.Name, c.lib.mapping.Path, maxFunctions)
			continue
		}
		if op.row.operation == opAlloc {
			r := *op.row
			r.size = none // the event of the allocator's function has it
			op.row = &r
		}
		if err := c.choose(&op); err != nil {
			s.options.Warnf("calls of %s of %s have the allocator's names: %v", op.Name, c.lib.mapping.Path, err)
			continue
		}
		op.Probe.Site = op.pack(number, c.machine.Word) |
			uint64(op.Site.Offset)<<40 | min(op.symbol.Size, maxOperatorCode)<<47
		if op.row.operation == opFree || c.jumpsAway(&op) {
			op.Probe.Site |= 1 << 37
		}
		s.found.Operators = append(s.found.Operators, op)
	}
}

// leaveOutAmbiguous leaves out operators that cannot be distinguished when the BPF programs
// find sites by address. Operators are not in an allocator's code, so these programs know
// only their place within a page.
func leaveOutAmbiguous(operators []Function, warn func(format string, args ...any)) {
	mask := uint64(os.Getpagesize()) - 1
	at := map[uint64]int{}
	for i := range operators {
		at[operators[i].Site.Addr&mask]++
	}
	for i := range operators {
		if op := &operators[i]; at[op.Site.Addr&mask] > 1 {
			warn("calls of %s of %s have the allocator's names: another operator is at the same place within a page", op.Name, op.Probe.Path)
			op.ambiguous = true
		}
	}
}
