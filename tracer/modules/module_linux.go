package modules

import (
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/functions"
)

// Module is a number of functions that handle the same kinds of things.
type Module struct {
	Name      string
	Desc      string
	Resources []trace.Resource // without numbers
	// ownOnly leaves out what allocators do that are traced.
	ownOnly bool
	// everywhere is for functions of the user's choice: calls within their own file count,
	// too, and they need not be for other files.
	everywhere bool
	rows       []row
}

// row is a function and what a call of it does.
type row struct {
	// symbols are names of the function, of which the first is canonical. A file may
	// have several of them, also at different places.
	symbols []string
	args    string // letters of package functions
	result  byte   // likewise; 0: a call counts when it begins
	out     int    // argument that points to what a call writes, from 1
	wrote   int    // bytes of that
	via     int    // word of that which points to what is wanted, before its length

	// name is that of the function in its source, where that is not the symbol's.
	name       string
	follow     int     // argument that steps lead on from, from 1; functions.FollowResult
	steps      []int64 // words to what was found last
	passed     bool    // functions.Function.Passed, which first must see to
	beside     int     // words from that argument's to one that is wanted, too
	everywhere bool    // calls of the library itself count, too

	first func(c *call) bool  // says when a call begins whether it is not another one's doing; nil: it is not
	ok    func(c *call) bool  // says whether it counts, as it was successful; nil: always
	frees []freeing           // what is over when a call begins that will succeed
	ends  func(c *call) []key // likewise, where it is not one thing
	tells []argument          // that the trace tells of these
	does  []step              // what a successful call does besides
}

// freeing is the end of something.
type freeing struct {
	resource string
	id       num
	only     func(c *call) bool       // says whether there is something; nil: there is
	args     func(c *call) []argument // that the trace tells of it; nil for none
}

// step is something that a call does.
type step func(c *call)

// num is a number that a call has.
type num func(c *call) uint64

// argument is one that the trace tells.
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

// group is a function with the rows of all modules that know it.
type group struct {
	symbol string
	rows   []known
}

// known is a row and whose it is.
type known struct {
	*row
	module *Module
}

// groups returns the functions of modules.
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

// Functions returns what probes are wanted for modules. Function.Module is what a
// Recorder of the same modules knows it by. stacks says whether stacks are wanted.
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
				f.Follow, f.Steps, f.Beside = r.follow, r.steps, r.beside
			}
		}
		all = append(all, f)
	}
	return all
}

// List returns the functions of a module as --list prints them.
func (m *Module) List() string {
	var names []string
	for i := range m.rows {
		if r := &m.rows[i]; len(r.does) > 0 || len(r.frees) > 0 || r.ends != nil {
			names = append(names, r.symbols...)
		}
	}
	return strings.Join(names, " ")
}
