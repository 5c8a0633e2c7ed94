package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"rtrace-bpf/internal/analysis/allocmap"
	"rtrace-bpf/internal/cli"
)

// heapKeys are the names in the comments of a list.
var heapKeys = []string{"base", "top", "low", "high", "keepcost"}

// isBlockList reports whether an input with this beginning is a list of blocks.
func isBlockList(head []byte) bool {
	for _, key := range heapKeys {
		if bytes.HasPrefix(head, []byte("# "+key+"=")) {
			return true
		}
	}
	return bytes.HasPrefix(head, []byte("0x"))
}

// readList reads lines with an address and a size, and values of the heap.
func (a *allocmapRun) readList(r io.Reader, name string) error {
	run := -1 // of a.runs; -1 before the first
	behind := true
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		if n%1024 == 0 && a.ctx.Err() != nil {
			return a.ctx.Err()
		}
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		if heap, ok := parseHeapKey(text); ok {
			a.listed.Extend(heap)
			behind = true
			continue
		}
		block, ok := parseBlock(text)
		if !ok {
			return cli.WithHint(fmt.Errorf("%s: line %d: %q is not a block", name, n, text),
				"a line is an address and a size, such as '0x0834aa90 22', or a value of the heap, such as '# base=0x0834a000'")
		}
		if behind {
			behind = false
			run = len(a.runs)
			a.runs = append(a.runs, nil)
		}
		a.runs[run] = append(a.runs[run], block)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

func parseHeapKey(text string) (h allocmap.Heap, ok bool) {
	key, value, found := strings.Cut(strings.TrimPrefix(text, "# "), "=")
	to := map[string]*uint64{"base": &h.Base, "top": &h.Top, "low": &h.Low, "high": &h.High, "keepcost": &h.KeepCost}[key]
	if !found || to == nil || !strings.HasPrefix(text, "# ") {
		return h, false
	}
	base := 10
	if key != "keepcost" {
		value, base = strings.TrimPrefix(value, "0x"), 16
	}
	n, err := strconv.ParseUint(value, base, 64)
	*to = n
	return h, err == nil
}

func parseBlock(text string) (b [2]uint64, ok bool) {
	fields := strings.Fields(text)
	if len(fields) != 2 || !strings.HasPrefix(fields[0], "0x") {
		return b, false
	}
	var err [2]error
	b[0], err[0] = strconv.ParseUint(fields[0][2:], 16, 64)
	b[1], err[1] = strconv.ParseUint(fields[1], 10, 64)
	return b, err[0] == nil && err[1] == nil
}
