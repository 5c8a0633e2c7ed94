package flags

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Alias declares further long names of a flag. Help does not show them.
func (g *Groups) Alias(name string, others ...string) {
	if g.aliases == nil {
		g.aliases = make(map[string]string)
	}
	for _, other := range others {
		g.aliases[other] = name
	}
}

// canonical returns the name under which a flag was declared.
func (g *Groups) canonical(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if own, ok := g.aliases[name]; ok {
		name = own
	}
	return pflag.NormalizedName(name)
}

// Arity is whether a flag has a value.
type Arity bool

// Flags without and with a value.
const (
	Switch Arity = false
	Valued Arity = true
)

// Refuse declares a flag that another program has and this one cannot have. Using it is an
// error that gives the reason and an alternative. short may be empty.
func (g *Groups) Refuse(name, short string, arity Arity, why string) {
	f := g.Hidden().VarPF(&refusal{why}, name, short, "")
	if arity == Switch {
		f.NoOptDefVal = "true"
	}
}

// refusal is the value of a refused flag.
type refusal struct{ why string }

var _ pflag.Value = (*refusal)(nil)

func (r *refusal) Set(string) error { return &refusedError{r.why} }
func (r *refusal) String() string   { return "" }
func (r *refusal) Type() string     { return "" }

// refusedError names what to use instead of a flag.
type refusedError struct{ why string }

func (e *refusedError) Error() string { return e.why }

// Command declares a switch. The arguments after it are a command, as after "--".
func (g *Groups) Command(p *bool, name, short string) {
	g.Hidden().BoolVarP(p, name, short, false, "")
	g.command = name
}

// dashed inserts "--" after the switch of Command, if that is among the arguments. Arguments
// before it are parsed like in the library, because a value may look like the switch.
func (g *Groups) dashed(all *pflag.FlagSet, args []string) []string {
	command := all.Lookup(g.command)
	cut := func(i int, before, first string, isPart bool) []string {
		out := slices.Clone(args[:i])
		if before != "" {
			out = append(out, before)
		}
		out = append(out, "--"+g.command, "--")
		if isPart {
			out = append(out, first)
		}
		return append(out, args[i+1:]...)
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return args
		case strings.HasPrefix(arg, "--"):
			name, value, valued := strings.Cut(arg[2:], "=")
			f := all.Lookup(name)
			if f == command && f != nil {
				return cut(i, "", value, valued)
			}
			if f != nil && !valued && f.NoOptDefVal == "" {
				i++
			}
		case len(arg) > 1 && arg[0] == '-':
			for n := 1; n < len(arg); n++ {
				f := all.ShorthandLookup(arg[n : n+1])
				if f == nil {
					return args // which Parse reports
				}
				if f == command {
					return cut(i, strings.TrimSuffix(arg[:n], "-"), arg[n+1:], n+1 < len(arg))
				}
				if f.NoOptDefVal == "" {
					if n+1 == len(arg) {
						i++
					}
					break
				}
				if n+1 < len(arg) && arg[n+1] == '=' {
					break
				}
			}
		}
	}
	return args
}

// Known returns the long name of the flag with the given name, which may be a short one of
// one letter, and whether the flag is refused. Without such a flag the name is empty.
func (g *Groups) Known(name string) (long string, refused bool) {
	all := g.all("")
	f := all.Lookup(name)
	if len(name) == 1 {
		f = all.ShorthandLookup(name)
	}
	if f == nil {
		return "", false
	}
	_, refused = f.Value.(*refusal)
	return f.Name, refused
}

// Given reports whether a flag was set.
func (g *Groups) Given(name string) bool {
	f := g.all("").Lookup(name)
	return f != nil && f.Changed
}

// Set sets a flag after the parsed arguments.
func (g *Groups) Set(name, text string) error {
	all := g.all("")
	return plainly(all, nil, all.Set(name, text))
}
