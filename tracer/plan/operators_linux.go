package plan

import (
	"strings"

	"rtrace-bpf/internal/symbol"
)

// Limits on the operators that are probed. The last two are what a packed site has room for.
const (
	maxOperatorFiles = 16
	maxFunctions     = 1 << 10   // functions and operators of a process
	maxOperatorCode  = 1<<16 - 1 // bytes of an operator
)

// Operators selects the C++ operators that give their names to the calls that they make of
// an allocator, and how they are found. Operators that count as functions of their own always
// have their names.
type Operators uint8

// The operators that give their names.
const (
	OperatorsNone Operators = iota
	OperatorsNew            // the operator new whose code called the allocator, by the return address: no probes
	OperatorsAll            // each form of new and delete, which costs one probe more for each new, and one or two for each delete
)

// OperatorChoices returns the choices by name.
func OperatorChoices() map[string]Operators {
	return map[string]Operators{"none": OperatorsNone, "new": OperatorsNew, "all": OperatorsAll}
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
		found = append(found, Function{Name: rows[i].Name, row: &rows[i], symbol: sym})
	}
	return found
}
