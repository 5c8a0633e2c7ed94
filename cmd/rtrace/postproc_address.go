package main

import (
	"strconv"
	"strings"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// callAddress is the value of --call-address.
type callAddress struct {
	module      string
	start, size uint64
}

// parseCallAddress parses MODULE:START+SIZE.
func parseCallAddress(text string) (a callAddress, err error) {
	bad := cli.Usagef("--call-address takes MODULE:START+SIZE with hexadecimal numbers, such as libc.so.6:2a1c0+7f, not %q", text)
	colon := strings.LastIndexByte(text, ':')
	if colon <= 0 {
		return a, bad
	}
	a.module = text[:colon]
	start, size, ok := strings.Cut(text[colon+1:], "+")
	if !ok {
		return a, bad
	}
	for _, n := range []struct {
		to   *uint64
		text string
	}{{&a.start, start}, {&a.size, size}} {
		if *n.to, err = strconv.ParseUint(strings.TrimPrefix(n.text, "0x"), 16, 64); err != nil {
			return a, bad
		}
	}
	if a.size == 0 || a.start+a.size < a.start {
		return a, bad
	}
	return a, nil
}

// find returns the addresses in the process: the first mapping counts whose path contains
// the module's name. It returns false if there is none.
func (a *callAddress) find(mappings []*trace.Record, legacy bool) (start, end uint64, ok bool) {
	for _, r := range mappings {
		if !strings.Contains(r.Mapping.Path, a.module) {
			continue
		}
		start = a.start + a.bias(&r.Mapping, legacy)
		end = start + a.size
		if !legacy {
			// A return address is after its call.
			start, end = start+1, end+1
		}
		return start, end, true
	}
	return 0, 0, false
}

// bias returns the difference between addresses in the process and in the file of a mapping.
// The original uses the start of the mapping, which is right if the file has its code at its
// beginning. A missing file counts as one with fixed addresses if these are in the mapping.
func (a *callAddress) bias(m *trace.Mapping, legacy bool) uint64 {
	files := resolve.New(resolve.Options{})
	bias, ok := files.Bias(m)
	switch {
	case ok && (!legacy || bias == 0):
		return bias
	case !ok && m.Start <= a.start && a.start < m.End:
		return 0
	case !legacy && m.Base != 0:
		return m.Base
	}
	return m.Start
}
