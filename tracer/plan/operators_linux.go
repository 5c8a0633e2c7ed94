package plan

import (
	"os"
	"strings"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/tracer/process"
)

// Limits on the operators that are probed. The last two are what a packed site has room for.
const (
	maxOperatorFiles = 16
	maxFunctions     = 1 << 10   // functions and operators of a process
	maxOperatorCode  = 1<<16 - 1 // bytes of an operator
)

// Operators selects the C++ operators that give their names to the calls that they make of
// an allocator. Operators that count as functions of their own always have their names.
type Operators uint8

// The operators that give their names.
const (
	OperatorsNone Operators = iota
	OperatorsNew            // new, which costs one probe more for each
	OperatorsAll            // new and delete, which costs one or two probes more for each delete
)

// OperatorChoices returns the choices by name.
func OperatorChoices() map[string]Operators {
	return map[string]Operators{"none": OperatorsNone, "new": OperatorsNew, "all": OperatorsAll}
}

// name reports whether operators like r give their names.
func (o Operators) name(r *Row) bool {
	return o == OperatorsAll || o == OperatorsNew && r.operation == opAlloc
}

// operatorForms are the replaceable operators of C++ (new.delete in its standard),
// as the Itanium ABI mangles them. # stands for the letter of size_t, $ for its type. If
// several have the same address, the first gives the name.
var operatorForms = []struct{ symbol, name string }{
	{"_Znw#", "operator new($)"},
	{"_Zna#", "operator new[]($)"},
	{"_Znw#RKSt9nothrow_t", "operator new($, std::nothrow_t const&)"},
	{"_Zna#RKSt9nothrow_t", "operator new[]($, std::nothrow_t const&)"},
	{"_Znw#St11align_val_t", "operator new($, std::align_val_t)"},
	{"_Zna#St11align_val_t", "operator new[]($, std::align_val_t)"},
	{"_Znw#St11align_val_tRKSt9nothrow_t", "operator new($, std::align_val_t, std::nothrow_t const&)"},
	{"_Zna#St11align_val_tRKSt9nothrow_t", "operator new[]($, std::align_val_t, std::nothrow_t const&)"},
	{"_ZdlPv", "operator delete(void*)"},
	{"_ZdaPv", "operator delete[](void*)"},
	{"_ZdlPv#", "operator delete(void*, $)"},
	{"_ZdaPv#", "operator delete[](void*, $)"},
	{"_ZdlPvRKSt9nothrow_t", "operator delete(void*, std::nothrow_t const&)"},
	{"_ZdaPvRKSt9nothrow_t", "operator delete[](void*, std::nothrow_t const&)"},
	{"_ZdlPvSt11align_val_t", "operator delete(void*, std::align_val_t)"},
	{"_ZdaPvSt11align_val_t", "operator delete[](void*, std::align_val_t)"},
	{"_ZdlPv#St11align_val_t", "operator delete(void*, $, std::align_val_t)"},
	{"_ZdaPv#St11align_val_t", "operator delete[](void*, $, std::align_val_t)"},
	{"_ZdlPvSt11align_val_tRKSt9nothrow_t", "operator delete(void*, std::align_val_t, std::nothrow_t const&)"},
	{"_ZdaPvSt11align_val_tRKSt9nothrow_t", "operator delete[](void*, std::align_val_t, std::nothrow_t const&)"},
}

// OperatorModule returns rows for the operators of programs whose words have that many bytes.
func OperatorModule(word uint64) []Row {
	letter, size := "m", "unsigned long"
	if word == 4 {
		letter, size = "j", "unsigned int"
	}
	rows := make([]Row, len(operatorForms))
	for i, form := range operatorForms {
		r := &rows[i]
		r.Symbol = strings.ReplaceAll(form.symbol, "#", letter)
		r.Name = strings.ReplaceAll(form.name, "$", size)
		r.operation, r.size, r.count, r.block = opAlloc, 0, none, none
		if strings.HasPrefix(form.symbol, "_Zd") {
			r.operation, r.size, r.block = opFree, none, 0
		}
	}
	return rows
}

// chooseOperators finds the C++ operators that call an allocator and give their names to
// those calls: operators of the C++ library, and the program's own. With dynamic linking the
// definition in any file may be the one that is called, so all of them get a probe, at the
// entry only. If an operator cannot be probed, its calls have the name of the allocator's
// function.
func (p *Plan) chooseOperators() error {
	if p.Options.Operators == OperatorsNone {
		return nil
	}
	maps, err := p.Target.Mappings()
	if err != nil {
		return err
	}
	rows := OperatorModule(p.Target.Machine.Word)
	seen := map[process.FileID]bool{}
	files := 0
	for _, m := range maps {
		if m.Inode == 0 || seen[m.ID()] || p.hasOwnOperators(m.ID()) {
			continue
		}
		seen[m.ID()] = true
		lib, found := p.definesOperators(m, rows)
		if lib == nil {
			continue
		}
		if files++; files > maxOperatorFiles {
			p.Options.Warnf("calls of the operators of %s have the allocator's names: operators of at most %d files are probed", m.Path, maxOperatorFiles)
		} else {
			p.addOperators(lib, found)
		}
		_ = lib.file.Close() // it was only read
	}
	p.leaveOutAmbiguous()
	return nil
}

// definesOperators returns the operators that the file of a mapping exports, and the file,
// which the caller closes. It returns nil if there are none.
func (p *Plan) definesOperators(m process.Mapping, rows []Row) (*library, []Function) {
	f, path, err := p.Target.Open(m)
	if err != nil || f == nil {
		return nil, nil // not an ELF file: data that is mapped executable
	}
	var found []Function
	if f.Machine() == p.Target.Machine.ELF {
		found = operatorsIn(rows, f.Exported)
	}
	if len(found) == 0 {
		_ = f.Close() // it was only read
		return nil, nil
	}
	return &library{mapping: m, path: path, file: f}, found
}

// operatorsIn lists the operators among rows for which defined returns a symbol. Several
// names of one address are one operator with aliases.
func operatorsIn(rows []Row, defined func(name string) (symbol.Symbol, bool)) []Function {
	var found []Function
	at := map[uint64]int{}
	for i := range rows {
		sym, ok := defined(rows[i].Symbol)
		if !ok {
			continue
		}
		if first, ok := at[sym.Addr]; ok {
			found[first].Aliases = append(found[first].Aliases, rows[i].Name)
			continue
		}
		at[sym.Addr] = len(found)
		found = append(found, Function{
			Name: rows[i].Name, row: &rows[i], addr: sym.Addr, size: sym.Size, ifunc: sym.IFunc,
		})
	}
	return found
}

// addOperators chooses sites for the operators of a file, and adds those to the plan.
func (p *Plan) addOperators(lib *library, found []Function) {
	c, err := newCode(p.Target.Machine, lib, 0, found)
	if err != nil {
		p.Options.Warnf("calls of the operators of %s have the allocator's names: %v", lib.mapping.Path, err)
		return
	}
	namingOperators{code: c, operators: found}.add(p)
}

// namingOperators are operators of a file that give their names to the calls that they make.
type namingOperators struct {
	code      *code
	operators []Function
}

// add chooses a site for each operator that gives its name, and adds those to the plan.
func (n namingOperators) add(p *Plan) {
	for i := range n.operators {
		p.addOperator(n.code, n.operators[i])
	}
}

// addOperator chooses a site for an operator and adds it to the plan, if the options let it
// give its name.
func (p *Plan) addOperator(c *code, op Function) {
	if !p.Options.Operators.name(op.row) {
		return
	}
	number := len(p.functions) + len(p.operators)
	if number >= maxFunctions {
		p.Options.Warnf("calls of %s of %s have the allocator's names: at most %d functions and operators are probed", op.Name, c.lib.mapping.Path, maxFunctions)
		return
	}
	if op.row.operation == opAlloc {
		r := *op.row
		r.size = none // the event of the allocator's function has it
		op.row = &r
	}
	if err := c.choose(&op); err != nil {
		p.Options.Warnf("calls of %s of %s have the allocator's names: %v", op.Name, c.lib.mapping.Path, err)
		return
	}
	op.Probe.Site = op.pack(number, c.machine.Word) |
		uint64(op.Site.Offset)<<40 | min(op.size, maxOperatorCode)<<47
	p.operators = append(p.operators, op)
}

// leaveOutAmbiguous leaves out operators that cannot be distinguished when the BPF programs
// find sites by address. Operators are not in an allocator's code, so these programs know
// only their place within a page.
func (p *Plan) leaveOutAmbiguous() {
	if p.Sites != SitesAddress {
		return
	}
	mask := uint64(os.Getpagesize()) - 1
	at := map[uint64]int{}
	for i := range p.operators {
		at[p.operators[i].Site.Addr&mask]++
	}
	for i := range p.operators {
		if op := &p.operators[i]; at[op.Site.Addr&mask] > 1 {
			p.Options.Warnf("calls of %s of %s have the allocator's names: another operator is at the same place within a page", op.Name, op.Probe.Path)
			op.ambiguous = true
		}
	}
}

// operatorProbes lists the probes on the operators that give their names.
func (p *Plan) operatorProbes() []Probe {
	var out []Probe
	for i := range p.operators {
		if op := &p.operators[i]; !op.ambiguous {
			out = append(out, op.Probe)
		}
	}
	return out
}

// Operators returns the C++ operators that give their names to the calls that they make;
// none without Options.Operators. The caller must not change the slice.
func (p *Plan) Operators() []Function { return p.operators }
