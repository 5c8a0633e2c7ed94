// Package fleet adds up figures of several traces by a key, and counts the traces,
// machines and services that they are from.
package fleet

import "maps"

// Unknown is the host or service of a trace that names none.
const Unknown = "unknown"

// Member is a trace of a fleet.
type Member struct {
	File    string
	Host    string // empty if it is not known
	Service string // empty if it is not known
}

// Per selects what has a row of its own.
type Per string

// The values of Per.
const (
	PerFleet   Per = "" // all traces together
	PerTrace   Per = "trace"
	PerHost    Per = "host"
	PerService Per = "service"
)

// Of returns the name of the trace, host or service of a member, or an empty string for the
// whole fleet.
func (p Per) Of(m *Member) string {
	switch p {
	case PerTrace:
		return m.File
	case PerHost:
		return named(m.Host)
	case PerService:
		return named(m.Service)
	}
	return ""
}

func named(name string) string {
	if name == "" {
		return Unknown
	}
	return name
}

// Count is how many traces, hosts and services there are. All that are unknown are one.
type Count struct {
	Traces   int `json:"traces"`
	Hosts    int `json:"hosts"`
	Services int `json:"services"`
}

// Set is a set of members, without their names. Members are added one after the other.
type Set struct {
	last            *Member
	traces          int
	hosts, services map[string]struct{}
}

// Add adds a member. All calls for a member follow each other.
func (s *Set) Add(m *Member) {
	if s.last == m {
		return
	}
	if s.last == nil {
		s.hosts, s.services = make(map[string]struct{}), make(map[string]struct{})
	}
	s.last = m
	s.traces++
	s.hosts[m.Host], s.services[m.Service] = struct{}{}, struct{}{}
}

// Count returns the size of the set.
func (s *Set) Count() Count { return Count{s.traces, len(s.hosts), len(s.services)} }

// Knows reports whether the host and the service of at least one member are known.
func (s *Set) Knows() (host, service bool) {
	known := func(names map[string]struct{}) bool {
		for name := range maps.Keys(names) {
			if name != "" {
				return true
			}
		}
		return false
	}
	return known(s.hosts), known(s.services)
}

// Row is the sum of a key.
type Row[T any] struct {
	Of  string // the trace, host or service, as Per selects it
	In  Set    // the members that have the key
	Sum T
}

// Table adds up rows. Its memory grows with the rows and the hosts and services of each, and
// not with the traces.
type Table[T any] struct {
	per  Per
	rows []*Row[T]
	at   map[rowKey]*Row[T]
}

type rowKey struct{ of, key string }

// NewTable returns an empty table.
func NewTable[T any](per Per) *Table[T] {
	return &Table[T]{per: per, at: make(map[rowKey]*Row[T])}
}

// Row returns the row of a key for a member, and whether it is new.
func (t *Table[T]) Row(m *Member, key string) (row *Row[T], isNew bool) {
	k := rowKey{t.per.Of(m), key}
	row, ok := t.at[k]
	if !ok {
		row = &Row[T]{Of: k.of}
		t.at[k] = row
		t.rows = append(t.rows, row)
	}
	row.In.Add(m)
	return row, !ok
}

// Rows returns all rows in the order of their first members.
func (t *Table[T]) Rows() []*Row[T] { return t.rows }
