package cli

import "strings"

// Program is a program with the data that a shell needs to complete its command line.
type Program struct {
	Page *Page // of the program itself
	// Subcommands are the pages of its subcommands. Their names begin with the program's
	// name and a blank.
	Subcommands []*Page
	// Links are other names of the program that mean a subcommand, such as rtrace-leaks, and
	// the subcommand of each.
	Links map[string]string
	// Default is the subcommand of a command line that begins with a flag; empty if that is
	// one of the program itself.
	Default string
	// Topics are further words that help explains.
	Topics []string
}

// sub returns the name of a subcommand without the program's name.
func (p *Program) sub(page *Page) string {
	return strings.TrimPrefix(page.Name, p.Page.Name+" ")
}

// words returns the flags of a page as a shell completes them.
func (p *Page) words() string {
	var words []string
	for _, g := range p.Flags {
		for _, f := range g.Flags {
			words = append(words, "--"+f.Long)
			if f.Short != "" {
				words = append(words, "-"+f.Short)
			}
		}
	}
	return strings.Join(words, " ")
}

// general are the flags of a program that has subcommands.
const general = "help --help -h --version"

// explained returns the words that help explains.
func (p *Program) explained() string {
	return strings.Join(append([]string{p.names()}, p.Topics...), " ")
}

// commandNames returns the subcommands that start a command after --, with separator between
// them.
func (p *Program) commandNames(separator string) string {
	var names []string
	for _, s := range p.Subcommands {
		if s.Command {
			names = append(names, p.sub(s))
		}
	}
	return strings.Join(names, separator)
}

// function returns the name of a shell's function.
func (p *Program) function() string {
	return "_" + strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, p.Page.Name)
}

// names returns the names of the subcommands.
func (p *Program) names() string {
	names := make([]string, len(p.Subcommands))
	for i, s := range p.Subcommands {
		names[i] = p.sub(s)
	}
	return strings.Join(names, " ")
}

// indented returns lines four columns further to the right.
func indented(lines string) string {
	return "    " + strings.ReplaceAll(strings.TrimSuffix(lines, "\n"), "\n", "\n    ") + "\n"
}
