package main

import (
	"slices"
	"strconv"
	"strings"

	wire "rtrace-bpf/internal/wire/sptext"
	"rtrace-bpf/trace"
)

// heapLine parses a line of the heap block of a text, LABEL NUMBER.
func heapLine(comment string) (label string, n uint64, ok bool) {
	text, ok := strings.CutPrefix(comment, wire.HeapPrefix)
	i := strings.LastIndexByte(text, ' ')
	if !ok || i < 0 {
		return "", 0, false
	}
	// Numbers below zero are those above 2^31.
	signed, err := strconv.ParseInt(text[i+1:], 0, 64)
	if n = uint64(uint32(signed)); err != nil || signed >= 0 {
		n, err = strconv.ParseUint(text[i+1:], 0, 64)
	}
	return text[:i], n, err == nil
}

// heapOfText returns the state of the heap in the comments of a text; nil if there is none.
// The binary form has a record for it.
func heapOfText(comments []*trace.Record) *trace.Record {
	r := &trace.Record{Kind: trace.KindHeapInfo}
	h := &r.HeapInfo
	found := false
	for _, c := range comments {
		label, n, ok := heapLine(c.Comment)
		if c.Kind != trace.KindComment || !ok {
			continue
		}
		switch i := slices.Index(wire.HeapAddresses[:], label); i {
		case 0, 1:
			*[...]*uint64{&h.Bottom, &h.Top}[i] = n
			found = true
		}
		if i := slices.Index(wire.HeapNumbers[:], label); i >= 0 {
			*[...]*uint64{
				&h.Arena, &h.OrdBlks, &h.SmBlks, &h.HBlks, &h.HBlkHd,
				&h.UsmBlks, &h.FsmBlks, &h.UordBlks, &h.FordBlks, &h.KeepCost,
			}[i] = n
			found = true
		}
	}
	if !found {
		return nil
	}
	return r
}
