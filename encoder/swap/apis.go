package swap

import (
	"maps"
	"strings"

	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// maxNames bounds the number of functions that get a name.
const maxNames = 1 << 16

// apis holds the numbers of functions: the known ones and those in the trace.
type apis struct {
	memory map[string]*wire.API // of the allocator
	others map[string]*wire.API
	next   uint32
}

func newAPIs() apis {
	a := apis{memory: map[string]*wire.API{}, others: map[string]*wire.API{}, next: wire.FirstNamedAPI}
	for i := range wire.MemoryAPIs {
		api := &wire.MemoryAPIs[i]
		a.memory[api.Name] = api
	}
	for i := range wire.OtherAPIs {
		api := &wire.OtherAPIs[i]
		a.others[api.Name] = api
	}
	return a
}

// names returns the names by their numbers. The caller owns the map.
func (a *apis) names() map[uint32]string {
	all := map[uint32]string{}
	for _, list := range []map[string]*wire.API{a.memory, a.others} {
		for api := range maps.Values(list) {
			all[api.ID] = api.Name
		}
	}
	return all
}

// allocator returns the function of a call of the allocator. It gives a function that is in
// no table a number; added reports that.
func (a *apis) allocator(c *trace.Call) (api *wire.API, added bool) {
	if api = a.memory[c.Function]; api != nil {
		return api, false
	}
	if c.Function == "" || len(a.memory) >= maxNames {
		name := "malloc"
		switch c.Op {
		case trace.OpFree:
			name = "free"
		case trace.OpMove:
			name = "realloc"
		}
		return a.memory[name], false
	}
	return a.add(a.memory, c.Function), true
}

// other is allocator for a call of another object.
func (a *apis) other(t *wire.Object, c *trace.Call) (api *wire.API, added bool) {
	name := c.Function
	if a.others[name] == nil && (name == "" || len(a.others) >= maxNames) {
		if name = t.Made; c.Op == trace.OpFree {
			name = t.Ended
		}
	}
	if api = a.others[name]; api != nil {
		return api, false
	}
	return a.add(a.others, name), true
}

func (a *apis) add(to map[string]*wire.API, function string) *wire.API {
	api := &wire.API{ID: a.next, Name: strings.Clone(function)}
	a.next++
	to[api.Name] = api
	return api
}
