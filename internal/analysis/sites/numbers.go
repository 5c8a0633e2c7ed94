package sites

import "iter"

// Numbers holds a number for each type of resource and place of a process; 0
// where there is none yet. The zero Numbers is empty.
type Numbers [][]uint32

// At returns the number of a place for a resource. It is valid until the next
// call for the same resource.
func (n *Numbers) At(resource int, place uint32) *uint32 {
	for len(*n) <= resource {
		*n = append(*n, nil)
	}
	of := (*n)[resource]
	for int(place) >= len(of) {
		of = append(of, 0)
	}
	(*n)[resource] = of
	return &of[place]
}

// Of yields the numbers of a place, one for each resource that has one.
func (n Numbers) Of(place uint32) iter.Seq[*uint32] {
	return func(yield func(*uint32) bool) {
		for _, of := range n {
			if int(place) < len(of) && of[place] != 0 && !yield(&of[place]) {
				return
			}
		}
	}
}
