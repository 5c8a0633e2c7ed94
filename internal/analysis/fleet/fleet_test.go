package fleet

import (
	"fmt"
	"slices"
	"testing"
)

func members() []Member {
	return []Member{
		{File: "a", Host: "web1", Service: "api"},
		{File: "b", Host: "web1", Service: "shop"},
		{File: "c", Host: "web2", Service: "api"},
		{File: "d"},
	}
}

// Each member adds 1 to the key x twice, and its number to the key of its file.
func TestTable(t *testing.T) {
	for per, want := range map[Per][]string{
		PerFleet:   {"/x: 8 {4 3 3}", "/a: 1 {1 1 1}", "/b: 2 {1 1 1}", "/c: 3 {1 1 1}", "/d: 4 {1 1 1}"},
		PerTrace:   {"a/x: 2 {1 1 1}", "a/a: 1 {1 1 1}", "b/x: 2 {1 1 1}", "b/b: 2 {1 1 1}", "c/x: 2 {1 1 1}", "c/c: 3 {1 1 1}", "d/x: 2 {1 1 1}", "d/d: 4 {1 1 1}"},
		PerHost:    {"web1/x: 4 {2 1 2}", "web1/a: 1 {1 1 1}", "web1/b: 2 {1 1 1}", "web2/x: 2 {1 1 1}", "web2/c: 3 {1 1 1}", "unknown/x: 2 {1 1 1}", "unknown/d: 4 {1 1 1}"},
		PerService: {"api/x: 4 {2 2 1}", "api/a: 1 {1 1 1}", "shop/x: 2 {1 1 1}", "shop/b: 2 {1 1 1}", "api/c: 3 {1 1 1}", "unknown/x: 2 {1 1 1}", "unknown/d: 4 {1 1 1}"},
	} {
		table, keys, of := NewTable[int](per), map[*Row[int]]string{}, members()
		for i := range of {
			for _, add := range []struct {
				key string
				n   int
			}{{"x", 1}, {of[i].File, i + 1}, {"x", 1}} {
				row, isNew := table.Row(&of[i], add.key)
				if _, known := keys[row]; known == isNew {
					t.Errorf("%q: row %s/%s is new: %v", per, row.Of, add.key, isNew)
				}
				keys[row] = add.key
				row.Sum += add.n
			}
		}
		var got []string
		for _, row := range table.Rows() {
			got = append(got, fmt.Sprintf("%s/%s: %d %v", row.Of, keys[row], row.Sum, row.In.Count()))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", per, got, want)
		}
	}
}

func TestSetKnows(t *testing.T) {
	var s Set
	if host, service := s.Knows(); host || service || s.Count() != (Count{}) {
		t.Error("an empty set knows something")
	}
	s.Add(&Member{File: "a", Service: "api"})
	if host, service := s.Knows(); host || !service {
		t.Errorf("host %v, service %v", host, service)
	}
	s.Add(&Member{File: "b", Host: "web1"})
	if host, service := s.Knows(); !host || !service {
		t.Errorf("host %v, service %v", host, service)
	}
}
