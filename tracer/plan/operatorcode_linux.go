package plan

import (
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/tracer/process"
)

// OperatorCode is the code of an operator new. With OperatorsNew, a call of an allocator that
// returns into this code has the operator's name. Addresses are those of the file.
type OperatorCode struct {
	Name       string
	Aliases    []string // other operators with the same code
	Start, End uint64
	Path       string // of the file, as the process names it
}

// NewOperatorsIn returns the code of the operators new that a file exports to processes on m.
func NewOperatorsIn(f *symbol.File, path string, m *process.Machine) []OperatorCode {
	if f.Machine() != m.ELF {
		return nil
	}
	return newOperators(OperatorModule(m.Word), path, f.Exported)
}

// newOperators returns the code of the operators new among rows for which defined returns a
// symbol with a size.
func newOperators(rows []Row, path string, defined func(name string) (symbol.Symbol, bool)) []OperatorCode {
	var all []OperatorCode
	for _, op := range operatorsIn(rows, defined) {
		if op.row.operation == opAlloc && op.symbol.Size > 0 {
			all = append(all, OperatorCode{op.Name, op.Aliases, op.symbol.Addr, op.symbol.Addr + op.symbol.Size, path})
		}
	}
	return all
}
