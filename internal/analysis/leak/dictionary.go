package leak

import (
	"strings"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/trace"
)

// dictionary numbers the names and places of the calls of a process.
type dictionary struct {
	names  sites.Names
	places sites.Table
	recent [4]recent
	next   int // index in recent

	// The dictionary is full above these numbers of names and words of places.
	maxNames, maxWords int

	frames []uint64 // of the last result of placeOf
	texts  []string
}

// recent is a recently used name.
type recent struct {
	name string
	id   uint32
}

// Up to these numbers of names and words are kept without a check for unused
// ones.
const (
	minNames = 1 << 14
	minWords = 1 << 18
)

func newDictionary() dictionary { return dictionary{maxNames: minNames, maxWords: minWords} }

// full reports whether unused names and places should be dropped.
func (d *dictionary) full() bool {
	return d.places.Words() > d.maxWords || d.names.Len() > d.maxNames
}

// raise sets new limits for a dictionary whose names and places are all in use,
// by a number of calls.
func (d *dictionary) raise(calls int) {
	d.maxWords = max(minWords, 2*d.places.Words(), calls)
	d.maxNames = max(minNames, 2*d.names.Len(), calls/4)
}

// function is names.Add with a cache of the last few names.
func (d *dictionary) function(name string) uint32 {
	for i := range d.recent {
		if r := &d.recent[i]; r.name == name && r.id != 0 {
			return r.id
		}
	}
	id := d.names.Add(name)
	d.recent[d.next] = recent{d.names.Text(id), id}
	d.next = (d.next + 1) % len(d.recent)
	return id
}

// place returns the number of a place.
func (d *dictionary) place(s *trace.Stack, c *trace.Caller) uint32 {
	return d.places.Add(s, c, &d.names)
}

// placeOf returns the place with a number. Its slices are valid until the next
// call.
func (d *dictionary) placeOf(n uint32) (trace.Stack, trace.Caller) {
	d.frames, d.texts = d.frames[:0], d.texts[:0]
	return d.places.Place(n, &d.names, &d.frames, &d.texts)
}

// args returns a copy of arguments.
func (d *dictionary) args(args []trace.Arg) []trace.Arg {
	out := make([]trace.Arg, len(args))
	for i, a := range args {
		out[i] = trace.Arg{Name: d.names.Text(d.names.Add(a.Name)), Value: strings.Clone(a.Value)}
	}
	return out
}
