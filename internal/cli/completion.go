package cli

import (
	"fmt"
	"strings"
)

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

// Bash returns the script for bash. In the command line, bash makes separate words of = and
// : characters.
func (p *Program) Bash() string {
	var b strings.Builder
	name := p.function()
	fmt.Fprintf(&b, "# bash completion for %s, generated from its flags\n\n%s() {\n", p.Page.Name, name)
	b.WriteString("    local cur=${COMP_WORDS[COMP_CWORD]} flags= subcommand= i=$COMP_CWORD before= offer= words= separator=\n")
	if len(p.Subcommands) > 0 {
		fmt.Fprintf(&b, "    case ${COMP_WORDS[0]##*/} in\n    %s)\n", p.Page.Name)
		first := "((COMP_CWORD == 1))"
		if p.Default != "" {
			first += " && [[ $cur != -* ]]"
		}
		fmt.Fprintf(&b, "        if %s; then\n            mapfile -t COMPREPLY < <(compgen -W '%s %s' -- \"$cur\")\n            return\n        fi\n", first, p.names(), general)
		fmt.Fprintf(&b, "        subcommand=${COMP_WORDS[1]}\n")
		if p.Default != "" {
			fmt.Fprintf(&b, "        [[ $subcommand != -* ]] || subcommand=%s\n", p.Default)
		}
		fmt.Fprintf(&b, "        if [[ $subcommand == help ]]; then\n            mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$cur\")\n            return\n        fi\n        ;;\n", p.explained())
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
	switch names := p.commandNames(" | "); {
	case names != "":
		b.WriteString("    case $subcommand in\n    " + names + ")\n" + indented(bashCommand) + "        ;;\n    esac\n")
	case p.Page.Command:
		b.WriteString(bashCommand)
	}
	b.WriteString(bashFlag)
	for _, s := range append([]*Page{p.Page}, p.Subcommands...) {
		p.bashOffers(&b, s)
	}
	none := "files"
	if p.Page.Command {
		none = "nothing"
	}
	fmt.Fprintf(&b, bashOffer, none)
	fmt.Fprintf(&b, "complete -F %s %s\n", name, strings.Join(append([]string{p.Page.Name}, sortedKeys(p.Links)...), " "))
	return b.String()
}

// bashCommand completes a command after --.
const bashCommand = `    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            if ((i + 1 == COMP_CWORD)); then
                mapfile -t COMPREPLY < <(compgen -c -- "$cur")
            else
                compopt -o filenames 2>/dev/null
                mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            fi
            return
        fi
    done
`

// indented returns lines four columns further to the right.
func indented(lines string) string {
	return "    " + strings.ReplaceAll(strings.TrimSuffix(lines, "\n"), "\n", "\n    ") + "\n"
}

// bashFlag finds the flag whose value is completed: "before" is the subcommand and the flag,
// with = if that is between them.
const bashFlag = `    case $cur in
    --*=*) before=${cur%%=*}= cur=${cur#*=} ;;
    -*) ;;
    *)
        case $cur in
        = | :) cur= ;;
        *) ((i--)) ;;
        esac
        while ((i > 1)) && [[ ${COMP_WORDS[i]} == : ]]; do ((i -= 2)); done
        if [[ ${COMP_WORDS[i]} == = ]]; then
            before=${COMP_WORDS[i - 1]}=
        else
            before=${COMP_WORDS[i]}
        fi
        ;;
    esac
    case $subcommand$before in
`

// bashOffer completes a flag, its value or an argument. A value with several words is
// completed after the last comma; after a colon, bash itself starts a new word.
const bashOffer = `    *) offer=%s ;;
    esac
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$cur")
        return
    fi
    before=
    if [[ $separator == , ]]; then
        before=${cur%%"${cur##*,}"} cur=${cur##*,}
    fi
    case $offer in
    words) mapfile -t COMPREPLY < <(compgen -P "$before" -W "$words" -- "$cur") ;;
    processes) mapfile -t COMPREPLY < <(compgen -P "$before" -W "$(cd /proc && echo [0-9]*)" -- "$cur") ;;
    commands) mapfile -t COMPREPLY < <(compgen -W "$(cat /proc/[0-9]*/comm 2>/dev/null)" -- "$cur" | sort -u) ;;
    users) mapfile -t COMPREPLY < <(compgen -u -- "$cur") ;;
    folders)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        ;;
    files)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        ;;
    *) COMPREPLY=() ;;
    esac
}

`

// bashOffers writes the cases of a page's flags with values.
func (p *Program) bashOffers(b *strings.Builder, page *Page) {
	subcommand := ""
	if page != p.Page {
		subcommand = p.sub(page)
	}
	for _, g := range page.Flags {
		for _, f := range g.Flags {
			if f.Value == "" {
				continue
			}
			pattern := subcommand + "--" + f.Long + "="
			if !f.Optional {
				pattern += " | " + subcommand + "--" + f.Long
				if f.Short != "" {
					pattern += " | " + subcommand + "-" + f.Short
				}
			}
			fmt.Fprintf(b, "    %s) offer=%s", pattern, thingNames[f.Offer.Things])
			if len(f.Offer.Words) > 0 {
				fmt.Fprintf(b, " words='%s'", strings.Join(f.Offer.Words, " "))
			}
			if f.Offer.Separator != "" {
				fmt.Fprintf(b, " separator=%s", f.Offer.Separator)
			}
			b.WriteString(" ;;\n")
		}
	}
}

var thingNames = [...]string{
	OfferNothing: "nothing", OfferFiles: "files", OfferFolders: "folders", OfferProcesses: "processes",
	OfferCommands: "commands", OfferUsers: "users", OfferWords: "words",
}

// names returns the names of the subcommands.
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
		rest := "'*:file:_files'"
		if p.Page.Command {
			rest = "'*::command:_normal'"
		}
		b.WriteString("    _arguments -s -S" + p.Page.zshFlags("        ") + " \\\n        " + rest + "\n")
	} else {
		b.WriteString("    local subcommand=\n    case ${service} in\n")
		for _, link := range sortedKeys(p.Links) {
			fmt.Fprintf(&b, "    %s) subcommand=%s ;;\n", link, p.Links[link])
		}
		first := "((CURRENT == 2))"
		if p.Default != "" {
			first += " && [[ ${words[2]} != -* ]]"
		}
		b.WriteString("    *)\n        if " + first + "; then\n            local -a names=(\n")
		for _, s := range p.Subcommands {
			fmt.Fprintf(&b, "                %s\n", shellQuote(p.sub(s)+":"+strings.ReplaceAll(s.Summary, ":", `\:`)))
		}
		b.WriteString("            )\n            _describe -t commands subcommand names\n            return\n        fi\n")
		shift := "        subcommand=${words[2]}\n        shift words\n        ((CURRENT--))\n"
		if p.Default != "" {
			shift = "        if [[ ${words[2]} == -* ]]; then\n            subcommand=" + p.Default + "\n        else\n" + indented(shift) + "        fi\n"
		}
		b.WriteString(shift + "        ;;\n    esac\n    case $subcommand in\n")
		for _, s := range p.Subcommands {
			rest := " \\\n            '*:file:_files'"
			switch {
			case s.Command:
				rest = " \\\n            '*::command:_normal'"
			case p.Page.Command:
				rest = ""
			}
			fmt.Fprintf(&b, "    %s)\n        _arguments -s -S%s%s\n        ;;\n", p.sub(s), s.zshFlags("            "), rest)
		}
		if len(p.Topics) > 0 {
			fmt.Fprintf(&b, "    help) _values topic %s ;;\n", p.explained())
		}
		b.WriteString("    *) _files ;;\n    esac\n")
	}
	fmt.Fprintf(&b, "}\n\n%s \"$@\"\n", name)
	return b.String()
}

// zshFlags returns the flags of a page as arguments of _arguments.
func (p *Page) zshFlags(indent string) string {
	var b strings.Builder
	escape := strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`)
	for _, g := range p.Flags {
		for _, f := range g.Flags {
			spec := "[" + escape.Replace(f.Text) + "]"
			value := ""
			if f.Value != "" {
				value = ":" + escape.Replace(f.Value) + ":" + f.Offer.zsh()
			}
			long := "--" + f.Long
			switch {
			case f.Optional:
				long, value = long+"=-", ":"+value
			case f.Value != "":
				long += "="
			}
			fmt.Fprintf(&b, " \\\n%s%s", indent, shellQuote(long+spec+value))
			if f.Short != "" && f.Optional {
				fmt.Fprintf(&b, " \\\n%s%s", indent, shellQuote("-"+f.Short+spec))
			} else if f.Short != "" {
				fmt.Fprintf(&b, " \\\n%s%s", indent, shellQuote("-"+f.Short+spec+value))
			}
		}
	}
	return b.String()
}

// zsh returns the action of _arguments for a value.
func (o *Offer) zsh() string {
	switch o.Things {
	case OfferFiles:
		return "_files"
	case OfferFolders:
		return "_files -/"
	case OfferProcesses:
		return "_sequence _pids"
	case OfferCommands:
		return "_process_names -a"
	case OfferUsers:
		return "_users"
	case OfferWords:
		words := strings.NewReplacer(":", `\:`).Replace(strings.Join(o.Words, " "))
		if o.Separator != "" {
			return "_values -s " + o.Separator + " value " + words
		}
		return "(" + words + ")"
	}
	return " " // nothing
}

// fish returns the options of complete for a value.
func (o *Offer) fish() string {
	switch o.Things {
	case OfferFiles:
		return " -r -F"
	case OfferFolders:
		return " -x -a '(__fish_complete_directories)'"
	case OfferProcesses:
		return " -x -a '(__fish_complete_pids)'"
	case OfferCommands:
		return " -x -a '(cat /proc/*/comm 2>/dev/null | sort -u)'"
	case OfferUsers:
		return " -x -a '(__fish_complete_users)'"
	case OfferWords:
		if o.Separator != "" {
			return " -x -a " + fishQuote(`(__fish_complete_list `+o.Separator+` "string split , `+strings.Join(o.Words, ",")+`")`)
		}
		return " -x -a " + fishQuote(strings.Join(o.Words, " "))
	}
	return " -x"
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
				switch {
				case f.Optional && len(f.Offer.Words) > 0:
					b.WriteString(" -f -a " + fishQuote(strings.Join(f.Offer.Words, " ")))
				case f.Value != "" && !f.Optional:
					b.WriteString(f.Offer.fish())
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
		condition := "__fish_seen_subcommand_from " + name
		if name == p.Default {
			condition = "not __fish_seen_subcommand_from " + p.others()
		}
		flags(p.Page.Name, fmt.Sprintf(" -n '%s'", condition), s)
	}
	if len(p.Topics) > 0 {
		fmt.Fprintf(&b, "complete -c %s -n '__fish_seen_subcommand_from help' -f -a %s\n", p.Page.Name, fishQuote(p.explained()))
	}
	for _, link := range sortedKeys(p.Links) {
		flags(link, "", byName[p.Links[link]])
	}
	return b.String()
}

// others returns the subcommands except the default one, and help.
func (p *Program) others() string {
	names := []string{"help"}
	for _, s := range p.Subcommands {
		if name := p.sub(s); name != p.Default {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
