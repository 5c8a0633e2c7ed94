package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/symbol"
)

// functionAddressCommand prints where a function is in a file, as rtrace-function-address of
// sp-rtrace did with nm.
func functionAddressCommand() command {
	return command{
		name: "function-address",
		page: cli.Page{
			Summary:  "print where in a program or library a function is, for --call-address",
			Synopsis: []string{"[flags] FILE FUNCTION"},
			About: "Prints PATH:START+SIZE of a function in an ELF file, with both numbers in hexadecimal: the argument for --call-address of rtrace postproc. FUNCTION is " +
				"the name in the source or the linker name, with or without parameters. The symbols come from FILE or its separate debug file, which is found by build " +
				"ID or debug link.",
			Examples: []cli.Example{
				{Does: "find a function", Command: "rtrace function-address ./demo parse_file"},
				{Does: "list all variants of a C++ function", Command: "rtrace function-address --all /usr/lib/libfoo.so Foo::add"},
			},
			Exit: []cli.ExitRow{
				{Code: cli.OK, Text: "done"},
				{Code: cli.Failed, Text: "failed, there is no such function, or there are several without --all"},
				{Code: cli.Usage, Text: "the command line is wrong"},
			},
		},
		setup: func(f *flags) runFunc {
			var all bool
			f.group("What to print").BoolVarP(&all, "all", "a", false, "print all functions with this name and their full names, one per line")
			return func(_ context.Context, s cli.Streams, args []string) error {
				if len(args) != 2 || args[1] == "" {
					return cli.Usagef("a file and a function are needed; write rtrace function-address FILE FUNCTION")
				}
				return functionAddress(s, args[0], args[1], all)
			}
		},
	}
}

func functionAddress(s cli.Streams, path, name string, all bool) error {
	file, err := symbol.Open(path)
	if err != nil {
		return fmt.Errorf("reading symbols of %s: %w", path, err)
	}
	defer file.Close()
	if err := file.Load(); err != nil {
		return fmt.Errorf("reading symbols of %s: %w", path, err)
	}
	found := functionsNamed(file, name)
	switch {
	case file.Functions() == 0:
		return cli.WithHint(fmt.Errorf("%s has no symbols", path), "install its debug symbols")
	case len(found) == 0:
		return cli.WithHint(fmt.Errorf("no function %q in %s", name, path), "FUNCTION is the full name; you may leave out parameters")
	case len(found) > 1 && !all:
		return cli.WithHint(fmt.Errorf("%d functions %q in %s", len(found), name, path), "--all lists them; add the parameters to select one")
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	digits := file.Class() / 4
	for _, x := range found {
		line := fmt.Sprintf("%s:%0*x+%0*x", printable.Name(path), digits, x.Addr, digits, x.Size)
		if all {
			text, _ := symbol.Source(x.Name)
			line += " " + printable.Name(text)
		}
		if _, err := fmt.Fprintln(s.Out, line); err != nil {
			return err
		}
	}
	return nil
}

// functionsNamed returns the functions with a name, in ascending order of address: those
// with exactly that name or, if there are none, those with that name and parameters. If the
// same code has several names, it returns one of them.
func functionsNamed(file *symbol.File, name string) []symbol.Symbol {
	var exact, bare []symbol.Symbol
	for i := range file.Functions() {
		x := file.At(i)
		if x.Name == name {
			exact = append(exact, x)
			continue
		}
		switch text, mangled := symbol.Source(x.Name); {
		case !mangled:
		case text == name:
			exact = append(exact, x)
		case strings.HasPrefix(text, name+"(") && !strings.Contains(strings.TrimPrefix(text, name), "::"):
			bare = append(bare, x)
		}
	}
	if len(exact) > 0 {
		bare = exact
	}
	slices.SortStableFunc(bare, func(a, b symbol.Symbol) int {
		return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(b.Size, a.Size))
	})
	return slices.CompactFunc(bare, func(a, b symbol.Symbol) bool { return a.Addr == b.Addr })
}
