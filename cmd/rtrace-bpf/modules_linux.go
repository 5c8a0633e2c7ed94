package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/tracer"
	"rtrace-bpf/tracer/modules"
)

// memoryModule is the name of the module that traces allocators, which package tracer has.
const memoryModule = "memory"

// moduleConfig is what is traced.
type moduleConfig struct {
	enabled   string
	resources []string
	list      bool
}

func (m *moduleConfig) declare(f *pflag.FlagSet) {
	f.StringVarP(&m.enabled, "enable", "e", memoryModule, "trace with the modules of the colon-separated `LIST`, as memory:file; --list tells of them")
	flags.OfferSeveral(f, "enable", ":", moduleNames()...)
	f.StringArrayVar(&m.resources, "resource", nil, "trace what functions of the program or its libraries allocate and free, as `NAME:alloc=FUNCTION(id=ret,size=arg1),free=FUNCTION(id=arg1)`; may be repeated. id is ret, argN or *argN, what the function stores there; size argN, argN*argM or a number (default 1); realloc= is one more kind, and ok=zero, nonzero or any says when an allocation has succeeded. Of nested calls only the outermost counts")
	f.BoolVarP(&m.list, "list", "l", false, "list the modules and their functions and end")
}

// moduleNames returns the names of all modules.
func moduleNames() []string {
	names := []string{memoryModule, pagemapModule}
	for _, x := range modules.All() {
		names = append(names, x.Name)
	}
	return names
}

// meantModules returns the list that was probably meant by one with something wrong,
// commas for colons or names that are nearly right; empty if that is not known.
func meantModules(list string) string {
	names := strings.FieldsFunc(list, func(c rune) bool { return c == ':' || c == ',' || c == ' ' })
	for i, name := range names {
		if !slices.Contains(moduleNames(), moduleName(name)) {
			if names[i] = cli.Nearest(name, moduleNames()); names[i] == "" {
				return ""
			}
		}
	}
	return strings.Join(names, ":")
}

// has says whether a module is chosen.
func (m *moduleConfig) has(module string) bool {
	return slices.ContainsFunc(strings.Split(m.enabled, ":"), func(name string) bool { return moduleName(name) == module })
}

// memory says whether allocators are traced: also where there is nothing but the module
// about pages, which is about those of their blocks.
func (m *moduleConfig) memory() bool {
	return m.has(memoryModule) || m.has(pagemapModule) && !strings.Contains(m.enabled, ":")
}

// set chooses the modules. As with sp-rtrace their order is that of the trace.
func (m *moduleConfig) set(o *tracer.Options) (err error) {
	names := strings.Split(m.enabled, ":")
	for i, name := range names {
		names[i] = moduleName(name)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == memoryModule || name == pagemapModule })
	if o.Modules, err = modules.Select(names); err != nil {
		if meant := meantModules(m.enabled); meant != "" {
			return fmt.Errorf("-e %s: %w; did you mean -e %s?", m.enabled, err, meant)
		}
		return fmt.Errorf("-e %s: %w; %s", m.enabled, err, insteadOf(names))
	}
	for _, text := range m.resources {
		x, err := modules.ParseResource(text)
		if err != nil {
			return fmt.Errorf("--resource %w", err)
		}
		o.Modules = append(o.Modules, x)
	}
	o.NoMemory = !m.memory()
	return nil
}

// print lists the modules.
func (m *moduleConfig) print(w io.Writer) error {
	fmt.Fprintf(w, "%-10s memory of allocators: malloc, free and their like, C++ operators\n", memoryModule)
	fmt.Fprintf(w, "%-10s what the kernel says of each page at the end of the trace: the attachments %s\n", pagemapModule, strings.Join(pagemapAttachments, " and "))
	for _, x := range modules.All() {
		fmt.Fprintf(w, "%-10s %s: %s\n", x.Name, x.Desc, x.List())
		for _, r := range x.Resources {
			fmt.Fprintf(w, "%-10s <%s> %s\n", "", r.Type, r.Desc)
		}
	}
	return nil
}

// things tells how many things of each kind came and went.
func things(counts []tracer.ThingCount) []string {
	var all []string
	for _, c := range counts {
		if c.Allocs+c.Frees > 0 {
			all = append(all, fmt.Sprintf("%s %d, %d gone", c.Type, c.Allocs, c.Frees))
		}
	}
	return all
}
