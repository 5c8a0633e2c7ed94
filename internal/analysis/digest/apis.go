package digest

import (
	"strings"

	"rtrace-bpf/trace"
)

// apis counts the calls of traced functions.
type apis struct {
	byKey  map[apiKey]*API
	recent *API
}

type apiKey struct {
	name string
	op   trace.Op
}

// add counts a call of a traced function.
func (k *apis) add(c *trace.Call) {
	if a := k.recent; a == nil || a.Name != c.Function || a.Op != c.Op {
		key := apiKey{c.Function, c.Op}
		if k.byKey[key] == nil && len(k.byKey) >= maxAPIs {
			key.name = noMore
		}
		a = k.byKey[key]
		if a == nil {
			key.name = strings.Clone(key.name)
			a = &API{Name: key.name, Op: c.Op}
			k.byKey[key] = a
		}
		k.recent = a
	}
	k.recent.Calls++
	k.recent.Bytes += c.Size
}
