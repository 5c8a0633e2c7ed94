// Package flags declares the flags of a command in titled groups, as its help shows them.
// Apart from the commands' own flags, only this package uses the flag library.
package flags

import (
	"io"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/cli"
)

// Groups are the flags of one command. The zero value has none.
type Groups struct {
	groups  []group
	hidden  *pflag.FlagSet
	aliases map[string]string // further names of flags
	topic   string            // of help; empty if help was not requested
	command string            // the switch before a command; empty for none
}

type group struct {
	title string
	set   *pflag.FlagSet
}

// Group starts a group. Its flags are listed in the order of declaration. The back-quoted
// word of a usage text names the value.
func (g *Groups) Group(title string) *pflag.FlagSet {
	set := newSet(title)
	g.groups = append(g.groups, group{title, set})
	return set
}

// Hidden returns the set of flags that no help shows: switches for tests.
func (g *Groups) Hidden() *pflag.FlagSet {
	if g.hidden == nil {
		g.hidden = newSet("hidden")
	}
	return g.hidden
}

// isHidden reports whether no help shows a flag. Flags of the hidden group have no text.
func isHidden(f *pflag.Flag) bool { return f.Hidden || f.Usage == "" }

// VisitAll calls fn for each flag, including hidden ones.
func (g *Groups) VisitAll(fn func(*pflag.Flag)) { g.all("").VisitAll(fn) }

// HasShort reports whether a flag in a group has the given short name.
func (g *Groups) HasShort(name string) bool {
	for _, x := range g.groups {
		if x.set.ShorthandLookup(name) != nil {
			return true
		}
	}
	return false
}

// Help declares the flag for help. short may be empty.
func (g *Groups) Help(set *pflag.FlagSet, short string) {
	f := set.VarPF((*helpTopic)(&g.topic), "help", short, "print a short help, or with =`TOPIC` a part of it; all prints everything")
	f.NoOptDefVal = cli.Brief
	Offer(set, "help", "all")
}

// Topic returns the requested topic of help, after Parse has returned pflag.ErrHelp.
func (g *Groups) Topic() string { return g.topic }

// helpTopic is the value of the flag for help.
type helpTopic string

var _ pflag.Value = (*helpTopic)(nil)

func (h *helpTopic) Set(text string) error {
	switch text {
	case "", "true":
		text = cli.Brief
	case "false":
		text = ""
	}
	*h = helpTopic(text)
	return nil
}

func (h *helpTopic) String() string { return string(*h) }
func (h *helpTopic) Type() string   { return "string" }

// Parse returns the arguments that are not flags, or pflag.ErrHelp.
func (g *Groups) Parse(name string, args []string) ([]string, error) {
	all, err := g.parse(name, args)
	if err != nil {
		return nil, err
	}
	return all.Args(), nil
}

// ParseCommand is Parse for commands that start another one. command is what follows "--",
// or nil without "--".
func (g *Groups) ParseCommand(name string, args []string) (rest, command []string, err error) {
	all, err := g.parse(name, args)
	if err != nil {
		return nil, nil, err
	}
	at := all.ArgsLenAtDash()
	if at < 0 {
		return all.Args(), nil, nil
	}
	return all.Args()[:at], append([]string{}, all.Args()[at:]...), nil
}

func (g *Groups) parse(name string, args []string) (*pflag.FlagSet, error) {
	all := g.all(name)
	if g.command != "" {
		args = g.dashed(all, args)
	}
	if err := swallowed(all, args); err != nil {
		return nil, err
	}
	if err := all.Parse(args); err != nil {
		return nil, plainly(all, args, err)
	}
	if g.topic != "" {
		return nil, pflag.ErrHelp
	}
	return all, nil
}

// all returns the flags of all groups.
func (g *Groups) all(name string) *pflag.FlagSet {
	all := newSet(name)
	for _, x := range g.groups {
		all.AddFlagSet(x.set)
	}
	if g.hidden != nil {
		all.AddFlagSet(g.hidden)
	}
	if g.aliases != nil {
		all.SetNormalizeFunc(g.canonical)
	}
	return all
}

// Usage returns the groups for a help page.
func (g *Groups) Usage() []cli.FlagGroup {
	var out []cli.FlagGroup
	for _, x := range g.groups {
		group := cli.FlagGroup{Title: x.title, Usage: x.set.FlagUsagesWrapped(cli.Width)}
		x.set.VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			value, text := pflag.UnquoteUsage(f)
			group.Flags = append(group.Flags, cli.Flag{
				Long: f.Name, Short: f.Shorthand, Value: value, Text: text,
				Optional: value != "" && f.NoOptDefVal != "", Offer: offer(f, value),
			})
		})
		out = append(out, group)
	}
	return out
}

func newSet(name string) *pflag.FlagSet {
	set := pflag.NewFlagSet(name, pflag.ContinueOnError)
	set.SortFlags = false
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	return set
}
