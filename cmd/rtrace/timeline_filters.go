package main

import (
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/analysis/consumption"
	"rtrace-bpf/internal/cli"
)

// filterFlags select the calls of the reports.
type filterFlags struct {
	sizes, indexes, times, contexts []string
	resource                        string
}

func (o *filterFlags) add(f *pflag.FlagSet) {
	f.StringArrayVar(&o.sizes, "filter-size", nil, "only blocks of a size in `FROM-TO` bytes; either may be missing (suffixes k, m, g: powers of 1024)")
	f.StringArrayVar(&o.indexes, "filter-index", nil, "only calls with an index in `FROM-TO`, as printed by rtrace postproc (suffixes k, m, g: powers of 1000)")
	f.StringArrayVar(&o.times, "filter-time", nil, "only calls at a time in `FROM-TO`, each as [HH:][MM:]SS[.sss] of the trace's clock; with a + before it, FROM counts from the first call, TO from the first that passes the other filters")
	f.StringArrayVar(&o.contexts, "filter-context", nil, "only calls in one of the contexts of the hexadecimal `MASK`; 0: in none")
	f.StringVar(&o.resource, "filter-resource", "", "only resources of the type `NAME`, as printed by rtrace info")
}

// filter parses the values.
func (o *filterFlags) filter() (consumption.Filter, error) {
	f := consumption.Filter{Resource: o.resource}
	for _, text := range o.sizes {
		r, ok := parseRange(text, 1024)
		if !ok {
			return f, cli.Usagef("--filter-size %s: write a range such as 100-200, 10k- or -1m", text)
		}
		f.Sizes = append(f.Sizes, r)
	}
	for _, text := range o.indexes {
		r, ok := parseRange(text, 1000)
		if !ok {
			return f, cli.Usagef("--filter-index %s: write a range such as 100-200, 10k- or -1m", text)
		}
		f.Indexes = append(f.Indexes, r)
	}
	for _, text := range o.times {
		r, ok := parseTimes(text)
		if !ok {
			return f, cli.Usagef("--filter-time %s: write a range such as 10.5-12, 10:00-+30 or +1:00-", text)
		}
		f.Times = append(f.Times, r)
	}
	for _, text := range o.contexts {
		mask, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 32)
		if err != nil {
			return f, cli.Usagef("--filter-context %s: write a hexadecimal mask of contexts such as 3, or 0 for calls in none", text)
		}
		f.Contexts = append(f.Contexts, uint32(mask))
	}
	return f, nil
}

// parseRange parses "FROM-TO" with either missing; unit is the factor of a k.
func parseRange(text string, unit uint64) (r consumption.Range, ok bool) {
	from, to, ok := strings.Cut(text, "-")
	if !ok {
		return r, false
	}
	if from != "" {
		if r.Min, ok = parseAmount(from, unit); !ok {
			return r, false
		}
	}
	if to != "" {
		if r.End, ok = parseAmount(to, unit); !ok || r.End < r.Min {
			return r, false
		}
		r.End++ // the largest number plus 1 is 0, which means no end
	}
	return r, true
}

func parseAmount(text string, unit uint64) (uint64, bool) {
	factor := uint64(1)
	if i := strings.IndexByte("kmg", text[len(text)-1]|0x20); i >= 0 {
		text = text[:len(text)-1]
		for range i + 1 {
			factor *= unit
		}
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n * factor, err == nil && n <= math.MaxUint64/factor
}

// parseTimes parses "FROM-TO" with either missing.
func parseTimes(text string) (t consumption.Times, ok bool) {
	from, to, ok := strings.Cut(text, "-")
	if !ok {
		return t, false
	}
	if t.From, ok = parseMoment(from); !ok {
		return t, false
	}
	t.To, ok = parseMoment(to)
	return t, ok
}

// parseMoment parses "[+][HH:][MM:]SS[.sss]", or "".
func parseMoment(text string) (m consumption.Moment, ok bool) {
	if text == "" {
		return m, true
	}
	m.Set = true
	text, m.Relative = strings.CutPrefix(text, "+")
	whole, fraction, _ := strings.Cut(text, ".")
	parts := strings.Split(whole, ":")
	if len(parts) > 3 || whole == "" && fraction == "" || len(fraction) > 9 {
		return m, false
	}
	for i, part := range parts {
		if part == "" && len(parts) == 1 {
			break // such as .5
		}
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil || i > 0 && n > 59 {
			return m, false
		}
		m.At = m.At*60 + int64(n)
	}
	if m.At > math.MaxInt64/int64(2e9) {
		return m, false
	}
	m.At *= 1e9
	if fraction != "" {
		n, err := strconv.ParseUint(fraction+strings.Repeat("0", 9-len(fraction)), 10, 32)
		if err != nil {
			return m, false
		}
		m.At += int64(n)
	}
	return m, true
}

// words describes the filters.
func (o *filterFlags) words() string {
	var all []string
	add := func(name string, values ...string) {
		for _, v := range values {
			all = append(all, name+" "+v)
		}
	}
	add("size", o.sizes...)
	add("index", o.indexes...)
	add("time", o.times...)
	add("context", o.contexts...)
	if o.resource != "" {
		add("resource", o.resource)
	}
	return strings.Join(all, ", ")
}
