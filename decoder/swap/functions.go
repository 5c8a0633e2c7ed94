package swap

import wire "rtrace-bpf/internal/wire/swap"

// functions holds the names of functions by their numbers, from API_NAME or Options.
type functions map[uint32]string

// add adds a name, if there is room.
func (n functions) add(api uint32, name string) {
	if len(n) < maxMapped {
		n[api] = name
	}
}

// of returns the name of the function of a probe. Other releases number functions
// differently; for an unknown number the name is derived from the arguments.
func (n functions) of(p *probed) string {
	if len(n) > 0 {
		if name, ok := n[p.api]; ok {
			return name
		}
	}
	if api := wire.LookupAPI(wire.ProbeMemory, p.api); api != nil {
		return api.Name
	}
	switch {
	case p.kind == wire.MemoryFree:
		return "free"
	case p.moves():
		return "realloc"
	case p.signature("xx"):
		return "calloc"
	}
	return "malloc"
}

// known returns the name of a function whose number is known. Other releases
// number functions differently.
func (n functions) known(api uint32) (string, bool) {
	if name := n[api]; name != "" && api >= wire.FirstNamedAPI {
		return name, true
	}
	if known := wire.LookupAPI(wire.ProbeFile, api); known != nil {
		return known.Name, true
	}
	return "", false
}
