package cli

import (
	"fmt"
	"strings"
)

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

func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
