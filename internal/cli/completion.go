package cli

import (
	"fmt"
	"strings"
)

// Program is a program with what a shell has to know to complete its command line.
type Program struct {
	Page *Page // of the program itself
	// Subcommands are the pages of its subcommands, whose names begin with the
	// program's and a blank.
	Subcommands []*Page
	// Links are other names of the program under which it is a subcommand, as
	// rtrace-leaks, and which one.
	Links map[string]string
}

// sub is the name of a subcommand without that of the program.
func (p *Program) sub(page *Page) string {
	return strings.TrimPrefix(page.Name, p.Page.Name+" ")
}

// words are the flags of a page as a shell completes them.
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

// function is the name of a shell's function.
func (p *Program) function() string {
	return "_" + strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, p.Page.Name)
}

// Bash returns the script for bash.
func (p *Program) Bash() string {
	var b strings.Builder
	name := p.function()
	fmt.Fprintf(&b, "# bash completion for %s, generated from its flags\n\n%s() {\n", p.Page.Name, name)
	b.WriteString("    local cur=${COMP_WORDS[COMP_CWORD]} flags= subcommand=\n")
	if len(p.Subcommands) > 0 {
		fmt.Fprintf(&b, "    case ${COMP_WORDS[0]##*/} in\n    %s)\n", p.Page.Name)
		fmt.Fprintf(&b, "        if ((COMP_CWORD == 1)); then\n            mapfile -t COMPREPLY < <(compgen -W '%s %s' -- \"$cur\")\n            return\n        fi\n", p.names(), general)
		fmt.Fprintf(&b, "        subcommand=${COMP_WORDS[1]}\n")
		fmt.Fprintf(&b, "        if [[ $subcommand == help ]]; then\n            mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$cur\")\n            return\n        fi\n        ;;\n", p.names())
		for _, link := range sortedKeys(p.Links) {
			fmt.Fprintf(&b, "    %s) subcommand=%s ;;\n", link, p.Links[link])
		}
		b.WriteString("    esac\n    case $subcommand in\n")
		for _, s := range p.Subcommands {
			fmt.Fprintf(&b, "    %s) flags='%s' ;;\n", p.sub(s), s.words())
		}
		b.WriteString("    esac\n")
	} else {
		fmt.Fprintf(&b, "    flags='%s'\n", p.Page.words())
	}
	b.WriteString("    if [[ $cur == -* ]]; then\n        mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$cur\")\n    else\n")
	b.WriteString("        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n    fi\n}\n\n")
	fmt.Fprintf(&b, "complete -o filenames -F %s %s\n", name, strings.Join(append([]string{p.Page.Name}, sortedKeys(p.Links)...), " "))
	return b.String()
}

// names are those of the subcommands.
func (p *Program) names() string {
	names := make([]string, len(p.Subcommands))
	for i, s := range p.Subcommands {
		names[i] = p.sub(s)
	}
	return strings.Join(names, " ")
}

// Zsh returns the script for zsh.
func (p *Program) Zsh() string {
	var b strings.Builder
	name := p.function()
	all := strings.Join(append([]string{p.Page.Name}, sortedKeys(p.Links)...), " ")
	fmt.Fprintf(&b, "#compdef %s\n# zsh completion for %s, generated from its flags\n\n%s() {\n", all, p.Page.Name, name)
	if len(p.Subcommands) == 0 {
		b.WriteString("    _arguments -s -S" + p.Page.zshFlags("        ") + " \\\n        '*:file:_files'\n")
	} else {
		b.WriteString("    local subcommand=\n    case ${service} in\n")
		for _, link := range sortedKeys(p.Links) {
			fmt.Fprintf(&b, "    %s) subcommand=%s ;;\n", link, p.Links[link])
		}
		b.WriteString("    *)\n        if ((CURRENT == 2)); then\n            local -a names=(\n")
		for _, s := range p.Subcommands {
			fmt.Fprintf(&b, "                %s\n", shellQuote(p.sub(s)+":"+strings.ReplaceAll(s.Summary, ":", `\:`)))
		}
		b.WriteString("            )\n            _describe -t commands subcommand names\n            return\n        fi\n")
		b.WriteString("        subcommand=${words[2]}\n        shift words\n        ((CURRENT--))\n        ;;\n    esac\n    case $subcommand in\n")
		for _, s := range p.Subcommands {
			fmt.Fprintf(&b, "    %s)\n        _arguments -s -S%s \\\n            '*:file:_files'\n        ;;\n", p.sub(s), s.zshFlags("            "))
		}
		b.WriteString("    *) _files ;;\n    esac\n")
	}
	fmt.Fprintf(&b, "}\n\n%s \"$@\"\n", name)
	return b.String()
}

// zshFlags are the flags of a page as arguments of _arguments.
func (p *Page) zshFlags(indent string) string {
	var b strings.Builder
	escape := strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`)
	for _, g := range p.Flags {
		for _, f := range g.Flags {
			spec := "[" + escape.Replace(f.Text) + "]"
			value := ""
			if f.Value != "" {
				value = ":" + escape.Replace(f.Value) + ":_files"
			}
			long := "--" + f.Long
			if f.Value != "" {
				long += "="
			}
			fmt.Fprintf(&b, " \\\n%s%s", indent, shellQuote(long+spec+value))
			if f.Short != "" {
				fmt.Fprintf(&b, " \\\n%s%s", indent, shellQuote("-"+f.Short+spec+value))
			}
		}
	}
	return b.String()
}

// Fish returns the script for fish.
func (p *Program) Fish() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# fish completion for %s, generated from its flags\n\n", p.Page.Name)
	flags := func(command, condition string, page *Page) {
		for _, g := range page.Flags {
			for _, f := range g.Flags {
				fmt.Fprintf(&b, "complete -c %s%s -l %s", command, condition, f.Long)
				if f.Short != "" {
					fmt.Fprintf(&b, " -s %s", f.Short)
				}
				if f.Value != "" {
					b.WriteString(" -r")
				}
				fmt.Fprintf(&b, " -d %s\n", fishQuote(f.Text))
			}
		}
	}
	flags(p.Page.Name, "", p.Page)
	byName := make(map[string]*Page)
	for _, s := range p.Subcommands {
		name := p.sub(s)
		byName[name] = s
		fmt.Fprintf(&b, "complete -c %s -n __fish_use_subcommand -f -a %s -d %s\n", p.Page.Name, name, fishQuote(s.Summary))
		flags(p.Page.Name, fmt.Sprintf(" -n '__fish_seen_subcommand_from %s'", name), s)
	}
	for _, link := range sortedKeys(p.Links) {
		flags(link, "", byName[p.Links[link]])
	}
	return b.String()
}

func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
