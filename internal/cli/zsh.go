package cli

import (
	"fmt"
	"strings"
)

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
