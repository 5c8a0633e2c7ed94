package modules

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/functions"
)

// ParseResource parses NAME:KIND=SYMBOL(FIELD=VALUE,...),..., and returns the module that
// traces it. KIND is alloc, free or realloc. The fields are
//
//	id    what is allocated or freed: ret, argN, or *argN for what the call writes there
//	size  argN, argN*argM or a number; 1 if missing
//	ok    when an allocation has succeeded: nonzero, zero or any result
func ParseResource(text string) (*Module, error) {
	wrong := func(format string, args ...any) (*Module, error) {
		return nil, fmt.Errorf("%q: %s", text, fmt.Sprintf(format, args...))
	}
	name, rest, ok := strings.Cut(text, ":")
	if !ok || name == "" || strings.ContainsAny(name, " \t\n<>()") {
		return wrong("a name and a colon must come first, as in pool:alloc=pool_get(size=arg2),free=pool_put(id=arg2)")
	}
	m := &Module{
		Name: name, Desc: "named by the user", everywhere: true,
		Resources: []trace.Resource{{Type: name, Desc: name + " of the program"}},
	}
	for _, item := range splitOutside(rest) {
		r, err := parseRow(name, item)
		if err != nil {
			return wrong("%v", err)
		}
		m.rows = append(m.rows, r)
	}
	return m, nil
}

// splitOutside splits at commas outside of parentheses.
func splitOutside(text string) (items []string) {
	depth, from := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				items, from = append(items, text[from:i]), i+1
			}
		}
	}
	return append(items, text[from:])
}

// userRow is a row that is being parsed.
type userRow struct {
	row
	args int // number of arguments that are needed
	id   num
	out  bool
	size num
	ok   string
}

func parseRow(resource, item string) (row, error) {
	kind, rest, ok := strings.Cut(item, "=")
	symbol, fields, has := strings.Cut(rest, "(")
	if !ok || symbol == "" {
		return row{}, fmt.Errorf("%q is not alloc=FUNCTION, free=FUNCTION or realloc=FUNCTION", item)
	}
	if has && !strings.HasSuffix(fields, ")") {
		return row{}, fmt.Errorf("%q: a closing parenthesis is missing at the end", item)
	}
	u := userRow{row: row{symbols: []string{symbol}, result: 'x'}, size: func(*call) uint64 { return 1 }}
	for field := range strings.SplitSeq(strings.TrimSuffix(fields, ")"), ",") {
		if field == "" {
			continue
		}
		if err := u.field(field); err != nil {
			return row{}, fmt.Errorf("%q: %w", item, err)
		}
	}
	if err := u.finish(kind, resource); err != nil {
		return row{}, fmt.Errorf("%q: %w", item, err)
	}
	return u.row, nil
}

// argument parses argN, counted from 1.
func (u *userRow) argument(text string) (int, error) {
	digits, ok := strings.CutPrefix(text, "arg")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 1 || n > functions.MaxArguments {
		return 0, fmt.Errorf("%q is not arg1 to arg%d", text, functions.MaxArguments)
	}
	u.args = max(u.args, n)
	return n, nil
}

func (u *userRow) field(field string) (err error) {
	name, value, _ := strings.Cut(field, "=")
	switch name {
	case "id":
		return u.setID(value)
	case "size":
		return u.setSize(value)
	case "ok":
		if u.ok = value; !slices.Contains([]string{"zero", "nonzero", "any"}, value) {
			return fmt.Errorf("ok is zero, nonzero or any, not %q", value)
		}
		return nil
	}
	return fmt.Errorf("unknown field %q (known: id, size, ok)", name)
}

func (u *userRow) setID(value string) error {
	if value == "ret" {
		u.id = result
		return nil
	}
	place, written := strings.CutPrefix(value, "*")
	n, err := u.argument(place)
	if err != nil {
		return err
	}
	if u.id = arg(n - 1); written {
		u.row.out, u.wrote, u.out = n, 8, true
	}
	return nil
}

func (u *userRow) setSize(value string) error {
	if n, err := strconv.ParseUint(value, 0, 64); err == nil {
		u.size = func(*call) uint64 { return n }
		return nil
	}
	factors := []int{}
	for place := range strings.SplitSeq(value, "*") {
		n, err := u.argument(place)
		if err != nil {
			return err
		}
		factors = append(factors, n-1)
	}
	u.size = func(c *call) uint64 {
		size := uint64(1)
		for _, n := range factors {
			size *= c.word(n)
		}
		return size
	}
	return nil
}

// finish makes the row from what was parsed.
func (u *userRow) finish(kind, resource string) error {
	switch kind {
	case "free", "realloc":
		if u.id == nil {
			u.id, u.args = arg(0), max(u.args, 1)
		}
		if u.out {
			return errors.New("the id of what is freed must be an argument")
		}
		u.frees = []freeing{{resource: resource, id: u.id, only: func(c *call) bool { return u.id(c) != 0 }}}
	case "alloc":
	default:
		return fmt.Errorf("%q is not alloc, free or realloc", kind)
	}
	u.row.args = strings.Repeat("x", u.args)
	if kind == "free" {
		u.result = 0 // the call counts at its entry
		return nil
	}
	id := u.id
	if id == nil || kind == "realloc" {
		id = result
	}
	if u.ok == "" {
		u.ok = "any"
		if kind == "realloc" || u.id == nil {
			u.ok = "nonzero"
		}
	}
	u.row.ok = map[string]func(c *call) bool{
		"zero": zero, "nonzero": func(c *call) bool { return notNull(c) && isMapped(c) }, "any": nil,
	}[u.ok]
	u.does = []step{func(c *call) {
		at := id(c)
		if u.out {
			var ok bool
			if at, ok = c.pointer(); !ok {
				return
			}
		}
		c.alloc(resource, at, u.size(c))
	}}
	return nil
}
