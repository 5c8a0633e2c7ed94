package modules

import (
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/functions"
)

// Module is a set of functions that handle the same kinds of resources.
type Module struct {
	Name      string
	Desc      string
	Resources []trace.Resource // without numbers
	// ownOnly leaves out calls of traced allocators.
	ownOnly bool
	// everywhere is for functions that the user names: calls within their own file count too, and
	// the functions need not be exported.
	everywhere bool
	rows       []row
}

// row is a function and the effects of a call.
type row struct {
	// symbols are names of the function; the first is canonical. A file may define several of
	// them, also at different addresses.
	symbols []string
	args    string // letters, as in package functions
	result  byte   // likewise; 0: a call counts when it begins
	out     int    // argument that points to what a call writes, from 1
	wrote   int    // number of these bytes
	via     int    // word of these bytes that points to the wanted data, followed by its length

	// name is the function's name in its source, if the symbol's differs.
	name       string
	follow     int     // argument that steps start from, from 1; functions.FollowResult
	steps      []int64 // words from the last address
	passed     bool    // functions.Function.Passed; first must handle it
	extra      int     // words from that argument's address to one more word to record
	everywhere bool    // calls of the library itself count too

	first  func(c *call) bool  // reports at the entry whether the call is not part of another one; nil: it is not
	ok     func(c *call) bool  // reports whether the call counts because it was successful; nil: always
	frees  []freeing           // what a call that will succeed frees, known at its entry
	ends   func(c *call) []key // likewise, if it is not a single resource
	detail []argument          // arguments recorded with these
	does   []step              // further effects of a successful call
}

// freeing is the end of a resource.
type freeing struct {
	resource string
	id       num
	only     func(c *call) bool       // reports whether there is a resource; nil: there is
	args     func(c *call) []argument // recorded with it; nil for none
}

// step is an effect of a call.
type step func(c *call)

// num is a number from a call.
type num func(c *call) uint64

// argument is an argument that is recorded.
type argument struct {
	name  string
	value func(c *call) (text string, ok bool)
}

// All returns the modules.
func All() []*Module {
	return []*Module{&file, &shmposix, &shmsysv, &mmap, &thread, &lock, &gobject, &qobject, &memtransfer}
}

// Select returns modules by their names.
func Select(names []string) (selected []*Module, err error) {
	for _, name := range names {
		all := All()
		i := slices.IndexFunc(all, func(m *Module) bool { return m.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no module %q", name)
		}
		if !slices.Contains(selected, all[i]) {
			selected = append(selected, all[i])
		}
	}
	return selected, nil
}

// group is a function with the rows of all modules that have it.
type group struct {
	symbol string
	rows   []known
}

// known is a row and its module.
type known struct {
	*row
	module *Module
}

// groups returns the functions of modules, with their rows.
func groups(selected []*Module) (all []group) {
	for _, m := range selected {
		for i := range m.rows {
			r := &m.rows[i]
			for _, symbol := range r.symbols {
				at := slices.IndexFunc(all, func(g group) bool { return g.symbol == symbol })
				if at < 0 {
					at = len(all)
					all = append(all, group{symbol: symbol})
				}
				all[at].rows = append(all[at].rows, known{r, m})
			}
		}
	}
	return all
}

// Functions returns the functions that need probes for modules. Function.Module is the number
// that a Recorder of the same modules uses. stacks selects whether stacks are recorded.
func Functions(selected []*Module, stacks bool) (all []functions.Function) {
	for i, g := range groups(selected) {
		f := functions.Function{Place: functions.Place{Symbol: g.symbol}, Module: i + 1, Stack: stacks}
		for _, r := range g.rows {
			if r.module.everywhere {
				f.Owner = r.module.Name
			}
			if len(r.args) > len(f.Args) {
				f.Args = r.args
			}
			if r.result != 0 {
				f.Result = r.result
			}
			if r.out != 0 {
				f.Out, f.Wrote, f.Via = r.out, max(f.Wrote, r.wrote), r.via
			}
			f.Passed = f.Passed || r.passed
			if r.follow != 0 {
				f.Follow, f.Steps, f.Extra = r.follow, r.steps, r.extra
			}
		}
		all = append(all, f)
	}
	return all
}

// List returns the functions of a module in the form of rtrace-bpf modules.
func (m *Module) List() string {
	var names []string
	for i := range m.rows {
		if r := &m.rows[i]; len(r.does) > 0 || len(r.frees) > 0 || r.ends != nil {
			names = append(names, r.symbols...)
		}
	}
	return strings.Join(names, " ")
}
