package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/report/table"
)

// estimatedRow is one group of a trace that was recorded in windows.
type estimatedRow struct {
	group *sites.Group
	estimate.Allocated
}

// topEstimates is the output of 'rtrace top --json' of such a trace.
type topEstimates struct {
	By          string             `json:"by"`
	Sort        string             `json:"sort"`
	Resource    string             `json:"resource"`
	Windows     estimate.Summary   `json:"windows"`
	Total       estimate.Allocated `json:"total"`
	Groups      []estimatedGroup   `json:"groups"`
	OtherGroups int                `json:"other_groups"` // groups that --top leaves out
}

type estimatedGroup struct {
	estimate.Allocated
	groupIdentity
}

// showEstimates prints what is known of a trace that was recorded in windows.
func (r *topReport) showEstimates(s cli.Streams) error {
	o := r.options
	if o.sort != "bytes" && o.sort != "blocks" {
		return cli.Usagef("--sort %s: the trace was recorded with --budget, so only bytes and blocks are known; rtrace-bpf -e growth records what grows", o.sort)
	}
	if !o.window.whole() {
		return cli.Usagef("--from, --to and --context: the trace was recorded with --budget, and estimates are for all of it")
	}
	rows, more := r.estimated()
	if o.json {
		return writeJSON(s.Out, r.estimatesObject(rows, more))
	}
	err := r.printEstimates(s.Out, rows, more)
	o.names.hint(s.Err, r.resolver)
	return err
}

// estimated returns the groups to print, and how many others there are.
func (r *topReport) estimated() (rows []estimatedRow, more int) {
	for n := range r.counter.Len() {
		rows = append(rows, estimatedRow{r.groups.At(n), r.estimates.Of(n)})
	}
	slices.SortStableFunc(rows, func(a, b estimatedRow) int {
		bytes, blocks := cmp.Compare(b.Bytes.Value, a.Bytes.Value), cmp.Compare(b.Blocks.Value, a.Blocks.Value)
		if r.options.sort == "blocks" {
			return cmp.Or(blocks, bytes)
		}
		return cmp.Or(bytes, blocks)
	})
	if top := r.options.top; top > 0 && top < len(rows) {
		rows, more = rows[:top], len(rows)-top
	}
	return rows, more
}

// printEstimates writes the estimates as text.
func (r *topReport) printEstimates(w io.Writer, rows []estimatedRow, more int) error {
	total := r.estimates.All()
	var lines strings.Builder
	fmt.Fprintf(&lines, "%s\n", r.estimates.Text())
	fmt.Fprintf(&lines, "allocated: %s blocks, %s bytes\n", total.Blocks.Text(), total.Bytes.Text())
	fmt.Fprintf(&lines, "%s\n", estimate.Lifeless)
	if _, err := io.WriteString(w, lines.String()+"\n"); err != nil || len(rows) == 0 {
		return err
	}
	t := table.New(table.Column{Title: "bytes"}, table.Column{Title: "%"}, table.Column{Title: "blocks"}, table.Column{Title: r.key.String(), Left: true})
	for i := range rows {
		x := &rows[i]
		share := percent(uint64(x.Bytes.Value), uint64(total.Bytes.Value))
		if r.options.sort == "blocks" {
			share = percent(uint64(x.Blocks.Value), uint64(total.Blocks.Value))
		}
		texts := r.texts(x.group)
		if i > 0 && len(texts) > 1 {
			t.Blank()
		}
		t.Row(x.Bytes.Text(), share, x.Blocks.Text(), texts[0])
		for _, text := range texts[1:] {
			t.Row("", "", "", text)
		}
	}
	_, err := t.WriteTo(w)
	if err == nil && more > 0 {
		_, err = fmt.Fprintf(w, "\n%s left out by --top\n", plural(uint64(more), "other group"))
	}
	return err
}

// estimatesObject returns the estimates as JSON.
func (r *topReport) estimatesObject(rows []estimatedRow, more int) *topEstimates {
	x := &topEstimates{
		By: r.key.String(), Sort: r.options.sort, Resource: r.options.resource, Windows: r.estimates.Summary(), Total: r.estimates.All(),
		Groups: make([]estimatedGroup, 0, len(rows)), OtherGroups: more,
	}
	for i := range rows {
		x.Groups = append(x.Groups, estimatedGroup{rows[i].Allocated, r.identity(rows[i].group)})
	}
	return x
}
