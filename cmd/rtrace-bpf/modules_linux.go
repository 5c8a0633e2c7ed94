package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/recording/memory"
	"rtrace-bpf/tracer/modules"
	"rtrace-bpf/tracer/plan"
)

// pagemapModule is the name of the module that attaches files about pages, which has no
// calls.
const pagemapModule = "pagemap"

// growthModule is the name of the module for resident memory, which package tracer implements,
// too.
const growthModule = "growth"

// memoryModule is the name of the module that traces allocators. Package tracer implements
// it, not package modules.
const memoryModule = "memory"

// moduleFlags select the modules: what is traced in addition to memory, or instead of it.
type moduleFlags struct {
	enabled   string
	resources []string
	list      bool
}

func (m *moduleFlags) declare(f *pflag.FlagSet) {
	f.StringVarP(&m.enabled, "enable", "e", memoryModule, "trace with the modules of the colon-separated `LIST`, such as memory:file; rtrace-bpf modules lists them")
	flags.OfferSeveral(f, "enable", ":", moduleNames()...)
	f.StringArrayVar(&m.resources, "resource", nil, "trace what functions of the program or its libraries allocate and free: `NAME:alloc=FUNCTION(id=ret,size=arg1),free=FUNCTION(id=arg1)`; may be repeated. id is ret, argN, or *argN, the value that the function stores there; size is argN, argN*argM or a number (default 1). realloc= is one more kind of function, and ok=zero, nonzero or any is the result of a successful allocation. Of nested calls, only the outermost counts")
}

// moduleNames returns the names of all modules.
func moduleNames() []string {
	names := []string{memoryModule, growthModule, pagemapModule}
	for _, x := range modules.All() {
		names = append(names, x.Name)
	}
	return names
}

// meantModules returns the list that the user probably meant: with colons instead of
// commas, and existing names instead of similar ones. It returns an empty string if a name is unknown.
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

// has reports whether a module is selected.
func (m *moduleFlags) has(module string) bool {
	return slices.ContainsFunc(strings.Split(m.enabled, ":"), func(name string) bool { return moduleName(name) == module })
}

// memory reports whether allocators are traced: with the module for memory, or with that
// for pages alone, which describes the pages of blocks.
func (m *moduleFlags) memory() bool {
	return m.has(memoryModule) || m.has(pagemapModule) && !strings.Contains(m.enabled, ":")
}

// set sets the options of modules. Their order is that of the trace, as in sp-rtrace.
func (m *moduleFlags) set(o *plan.Options) (err error) {
	names := strings.Split(m.enabled, ":")
	for i, name := range names {
		names[i] = moduleName(name)
	}
	if slices.Contains(names, growthModule) {
		return m.setGrowth(o)
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

// setGrowth sets the options of the module growth.
func (m *moduleFlags) setGrowth(o *plan.Options) error {
	if m.enabled != growthModule || len(m.resources) > 0 {
		return fmt.Errorf("-e %s: %s is recorded alone, because its blocks are pages that contain those of other modules: "+
			"run a second rtrace-bpf with -e %s for the same process", m.enabled, growthModule, growthModule)
	}
	o.Faults, o.NoMemory = true, true
	return nil
}

// modulesVerb lists the modules.
func modulesVerb() verb {
	return ownVerb("modules", &cli.Page{
		Summary:  "list the modules of record -e, and the functions that each traces",
		Synopsis: []string{""},
		About: "A module is a set of functions that allocate and free one kind of resource: memory, file descriptors, mappings, threads and so on. " +
			"rtrace-bpf record -e selects modules. Each module is listed with its functions and its types of resources. " +
			"rtrace-bpf help modules also shows how to trace functions of your own.",
		Examples: []cli.Example{
			{Does: "list all modules", Command: "rtrace-bpf modules"},
			{Does: "trace memory and file descriptors", Command: "sudo rtrace-bpf -p 4711 -e memory:file"},
		},
		Exit: plainExit,
	}, func(*flags.Groups) runFunc {
		return func(_ context.Context, s cli.Streams, args []string, _ settings) error {
			if len(args) > 0 {
				return cli.Usagef("%s: modules takes no arguments, and lists all modules", cli.Word(args[0]))
			}
			return printModules(s.Out)
		}
	})
}

// printModules lists the modules.
func printModules(w io.Writer) error {
	fmt.Fprintf(w, "%-10s memory of allocators: malloc, free and their like, C++ operators\n", memoryModule)
	fmt.Fprintf(w, "%-10s resident memory by the stack that touched it first, whatever the allocator: page faults; recorded alone\n", growthModule)
	fmt.Fprintf(w, "%-10s <resident> resident memory in bytes\n", "")
	fmt.Fprintf(w, "%-10s the kernel's flags of each page at the end of the trace: the attachments %s\n", pagemapModule, strings.Join(memory.PageFiles, " and "))
	for _, x := range modules.All() {
		fmt.Fprintf(w, "%-10s %s: %s\n", x.Name, x.Desc, x.List())
		for _, r := range x.Resources {
			fmt.Fprintf(w, "%-10s <%s> %s\n", "", r.Type, r.Desc)
		}
	}
	return nil
}
