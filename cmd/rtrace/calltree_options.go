package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/analysis/calltree"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/trace"
)

// yesNo is a switch with the value yes or no, as in the original program.
type yesNo bool

var _ pflag.Value = (*yesNo)(nil)

// Set implements pflag.Value.
func (y *yesNo) Set(s string) error {
	switch s {
	case "yes", "true":
		*y = true
	case "no", "false":
		*y = false
	default:
		return &groups.ValueError{Wrong: "the flag is a switch", Write: "yes or no"}
	}
	return nil
}

// String implements pflag.Value.
func (y *yesNo) String() string {
	if y != nil && bool(*y) {
		return "yes"
	}
	return "no"
}

// Type is the name of the value in help texts that give none.
func (y *yesNo) Type() string { return "yes|no" }

// addYesNo adds a switch. Without a value it is yes.
func addYesNo(f *pflag.FlagSet, y *yesNo, name, usage string) {
	f.Var(y, name, usage)
	f.Lookup(name).NoOptDefVal = "yes"
}

// ignoreShortcuts are flags for names of functions that are rarely interesting: allocators,
// containers and event loops of common libraries. The names are those of the original
// program.
var ignoreShortcuts = [...]struct {
	flag, usage     string
	prefixes, parts []string
}{
	{
		flag: "ignore-libc-allocs", usage: "leave out allocating functions of the C and C++ libraries",
		prefixes: []string{"malloc", "realloc", "calloc", "free", "operator new", "operator delete", "memdup", "strdup", "strndup"},
	},
	{
		flag: "ignore-font-allocs", usage: "leave out allocating functions of freetype and fontconfig",
		prefixes: []string{"FT_Realloc", "FT_Alloc", "FT_QAlloc", "FcStrCopy", "ft_alloc", "ft_realloc", "ft_mem_"},
	},
	{
		flag: "ignore-glib-internals", usage: "leave out internal functions of GLib",
		prefixes: []string{
			"g_type_", "g_object_", "g_signal_", "g_enum_", "g_quark_", "g_param_", "g_pattern_spec_", "g_hash_table_", "g_slist_", "g_list_",
			"g_array_", "g_malloc", "g_try_", "g_mem_", "g_slice_", "g_strdup", "g_strndup", "g_memdup",
			"g_main_context_", "g_main_dispatch", "g_closure_", "g_cclosure_",
		},
	},
	{
		flag: "ignore-gtk-internals", usage: "leave out internal functions of Gtk",
		prefixes: []string{"gtk_binding_", "_gtk_", "gtk_container_", "png_zalloc"},
	},
	{
		flag: "ignore-qt-internals", usage: "leave out internal functions of Qt",
		prefixes: []string{
			"qMalloc", "qRealloc", "qFree", "QString::", "QByteArray::", "QObject::", "QHashData::", "QListData::", "QMapData::", "QVectorData::",
			"QString in ", "QEventLoop::", "QMetaObject::", "QMetaCallEvent::", "qDBusAddSpyHook", "qt_plugin_instance",
		},
		parts: []string{"::event", "::notify", "::sendPostedEvents", "::qt_metacall", " QVariant::"},
	},
}

// parseSizes parses --size-range.
func (o *calltreeOptions) parseSizes() error {
	if o.sizes == "" {
		return nil
	}
	low, high, ok := strings.Cut(o.sizes, "-")
	var least, most groups.Size
	for _, x := range []struct {
		text string
		size *groups.Size
	}{{low, &least}, {high, &most}} {
		if x.text != "" {
			ok = ok && x.size.Set(x.text) == nil
		}
	}
	if !ok || high != "" && least > most {
		return cli.Usagef("--size-range %s: write a range such as 100-4K, 100- or -4K", o.sizes)
	}
	if high != "" && most == 0 {
		return cli.Usagef("--size-range %s: there would be nothing to draw", o.sizes)
	}
	o.tree.MinSize, o.tree.MaxSize = uint64(least), uint64(most)
	return nil
}

// explain prints what --verbose and --node request.
func (o *calltreeOptions) explain(w io.Writer, tree *calltree.Tree) {
	if o.verbose {
		for _, x := range []struct {
			what  string
			names []string
		}{
			{"left out, by the beginning", o.tree.Ignore},
			{"left out, by a part", o.tree.IgnoreMiddle},
			{"kept", o.tree.Keep},
			{"stops", o.tree.Stop},
			{"joined", o.tree.Join},
			{"only", o.tree.Only},
			{"only arguments", o.tree.OnlyArgs},
		} {
			if len(x.names) > 0 {
				fmt.Fprintf(w, "%s: %s\n", x.what, strings.Join(x.names, ", "))
			}
		}
		fmt.Fprintf(w, "%s of %s through %s; %s left out\n", plural(tree.Calls, "allocation"), plural(uint64(len(tree.Traces)), "stack"),
			plural(uint64(len(tree.Nodes)), "node"), plural(uint64(tree.Ignored), "frame"))
	}
	for _, name := range o.nodes {
		found := false
		for _, n := range tree.Nodes {
			if name != "*" && name != n.Name {
				continue
			}
			found = true
			bytes, calls := tree.Shares(n.Sum)
			fmt.Fprintf(w, "N%d %s: %s (%.2f%%), %s (%.2f%%)\n", n.Index, n.Name, plural(n.Bytes, "byte"), bytes, plural(n.Calls, "allocation"), calls)
			for _, e := range n.Parents {
				fmt.Fprintf(w, "\tfrom N%d %s: %s, %s\n", e.Parent.Index, e.Parent.Name, plural(e.Bytes, "byte"), plural(e.Calls, "allocation"))
			}
			for _, e := range n.Children {
				fmt.Fprintf(w, "\tto N%d %s: %s, %s\n", e.Child.Index, e.Child.Name, plural(e.Bytes, "byte"), plural(e.Calls, "allocation"))
			}
			if o.referrers {
				references(w, tree, n)
			}
		}
		if !found && name != "*" {
			warner(w, "calltree")(fmt.Errorf("no node is called %q; --node='*' prints all nodes with their full names", printable.Name(name)))
		}
	}
}

// references prints the nodes that refer to n: as their callee, or as their caller.
func references(w io.Writer, tree *calltree.Tree, n *calltree.Node) {
	for _, other := range tree.Nodes {
		for _, e := range other.Parents {
			if e.Parent == n {
				fmt.Fprintf(w, "\ta parent of N%d %s\n", other.Index, other.Name)
			}
		}
		for _, e := range other.Children {
			if e.Child == n {
				fmt.Fprintf(w, "\ta child of N%d %s\n", other.Index, other.Name)
			}
		}
	}
}

// counted passes on the records of src and, if requested, prints how many calls they have.
func (o *calltreeOptions) counted(src trace.Reader, w io.Writer) trace.Reader {
	if !o.progress {
		return src
	}
	return &countedReader{src: src, out: w}
}

// progressStep is the number of calls between two outputs.
const progressStep = 100_000

// countedReader prints the number of the calls that it passes on.
type countedReader struct {
	src   trace.Reader
	out   io.Writer
	calls uint64
}

// ReadRecord implements trace.Reader.
func (c *countedReader) ReadRecord(r *trace.Record) error {
	err := c.src.ReadRecord(r)
	if err == nil && r.Kind == trace.KindCall {
		c.calls++
	}
	if err != nil || r.Kind == trace.KindCall && c.calls%progressStep == 0 {
		fmt.Fprintf(c.out, "rtrace calltree: %s read\n", plural(c.calls, "call"))
	}
	return err
}
