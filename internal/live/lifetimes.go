package live

import (
	"slices"
	"time"
)

// Lifetimes counts how long blocks lived, in steps of 1, 3, 10, 30 … nanoseconds, and
// says from that which blocks are still young. The zero Lifetimes is empty.
type Lifetimes struct {
	ended [lifetimeBins]uint64
	all   uint64
}

// lifetimeBins is how many steps there are; the last begins at 1e18 ns.
const lifetimeBins = 38

// lifetimeBounds are where the steps begin.
var lifetimeBounds = func() []uint64 {
	bounds := []uint64{0}
	for n := uint64(1); len(bounds) < lifetimeBins; n *= 10 {
		bounds = append(bounds, n, 3*n)
	}
	return bounds[:lifetimeBins]
}()

// LifetimeBounds returns where the steps of lifetimes begin, in nanoseconds. It must not
// be changed.
func LifetimeBounds() []uint64 { return lifetimeBounds }

// LifetimeStep returns the number of the step that a time in nanoseconds is in.
func LifetimeStep(ns int64) int {
	n, found := slices.BinarySearch(lifetimeBounds, uint64(max(0, ns)))
	if !found {
		n--
	}
	return n
}

// Ended takes how many nanoseconds a block lived that was freed.
func (l *Lifetimes) Ended(ns int64) {
	l.ended[LifetimeStep(ns)]++
	l.all++
}

// enough is from how many blocks on something is said of how long they live: of a
// hundred, one of a hundred is one.
const enough = 100

// Usual returns the step that 99 of 100 blocks were freed within, 0 if less than 100
// were. A block that has not lived as long may be in use as others were, one that has
// lived longer is unusual.
func (l *Lifetimes) Usual() time.Duration {
	if l.all < enough {
		return 0
	}
	least := l.all - l.all/100
	for i, n := range l.ended[:lifetimeBins-1] {
		if least <= n {
			return time.Duration(lifetimeBounds[i+1])
		}
		least -= n
	}
	return time.Duration(lifetimeBounds[lifetimeBins-1])
}
