package digest

import (
	"strings"

	"rtrace-bpf/trace"
)

// resources is the types of resources of a trace.
type resources struct {
	byID   map[uint32]*resource
	types  []*resource
	points int // of their curves
}

// declare adds a declaration.
func (k *resources) declare(r *trace.Resource) {
	of := k.ofType(r.Type)
	k.byID[r.ID] = of
	if of != nil {
		of.Desc = strings.Clone(r.Desc)
		of.RefCount = of.RefCount || r.RefCount
		of.Sampled = of.Sampled || r.Sampled
	}
}

// of returns the type of a resource, or nil if there are too many.
func (k *resources) of(id uint32) *resource {
	if of, ok := k.byID[id]; ok {
		return of
	}
	of := k.ofType(Memory)
	k.byID[id] = of
	return of
}

func (k *resources) ofType(name string) *resource {
	for _, of := range k.types {
		if of.Type == name {
			return of
		}
	}
	if len(k.types) == maxResources {
		return nil
	}
	of := newResource(strings.Clone(name), len(k.types), k.points)
	k.types = append(k.types, of)
	return of
}
