package cli

import (
	"fmt"
	"strings"
)

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
