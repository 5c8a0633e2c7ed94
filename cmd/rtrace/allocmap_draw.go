package main

import (
	"errors"
	"fmt"
	"io"

	"rtrace-bpf/internal/analysis/allocmap"
	"rtrace-bpf/internal/report/pageview"
)

// errNoBlocks is the error if there is nothing to draw.
var errNoBlocks = errors.New("nothing to draw: no block is live at the end")

// whole writes one map of all runs.
func (a *allocmapRun) whole(w io.Writer, options allocmap.Options) error {
	m := allocmap.New(options, a.heap())
	for i, run := range a.runs {
		if i > 0 {
			m.Next()
		}
		for _, b := range run {
			m.Add(b[0], b[1])
		}
	}
	d := m.Draw()
	if d.Blocks == 0 {
		return errNoBlocks
	}
	a.warn("", &d)
	return pageview.WriteAllocMap(w, &d, a.legacy)
}

// frames writes a program that shows a map of each run. All maps begin at the same address.
func (a *allocmapRun) frames(w io.Writer, options allocmap.Options) error {
	options.Single = true
	heap := a.heap()
	if lowest, ok := a.lowest(); !ok {
		return errNoBlocks
	} else if heap.Base == 0 {
		heap.Base = lowest
	}
	for i, run := range a.runs {
		m := allocmap.New(options, heap)
		for _, b := range run {
			m.Add(b[0], b[1])
		}
		d := m.Draw()
		a.warn(a.names[i]+": ", &d)
		if err := pageview.WriteAllocFrame(w, a.names[i], &d, a.pause); err != nil {
			return err
		}
	}
	return nil
}

// lowest returns the lowest address of a block of any run.
func (a *allocmapRun) lowest() (address uint64, ok bool) {
	for _, run := range a.runs {
		for _, b := range run {
			if !ok || b[0] < address {
				address, ok = b[0], true
			}
		}
	}
	return address, ok
}

// warn reports what is not on a map.
func (a *allocmapRun) warn(of string, d *allocmap.Drawing) {
	warn := warner(a.streams.Err, "allocmap")
	if d.Outside > 0 {
		warn(fmt.Errorf("%s%d blocks are not in the heap and are not drawn", of, d.Outside))
	}
	for _, text := range d.Beyond {
		warn(errors.New(of + text))
	}
}
