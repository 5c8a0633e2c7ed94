package live

import (
	"math/bits"
	"time"
)

// Lifetimes counts the lifetimes of blocks, in steps of 1, 3, 10, 30 …
// nanoseconds, and derives which live blocks are still young. The zero
// Lifetimes is empty.
type Lifetimes struct {
	ended [lifetimeBins]uint64
	all   uint64
}

// lifetimeBins is the number of steps; the last begins at 1e18 ns.
const lifetimeBins = 38

// lifetimeBounds holds the start of each step.
var lifetimeBounds = func() []uint64 {
	bounds := []uint64{0}
	for n := uint64(1); len(bounds) < lifetimeBins; n *= 10 {
		bounds = append(bounds, n, 3*n)
	}
	return bounds[:lifetimeBins]
}()

// LifetimeBounds returns the start of each step of lifetimes, in nanoseconds.
// The caller must not change it.
func LifetimeBounds() []uint64 { return lifetimeBounds }

// LifetimeStep returns the number of the step that contains a time in
// nanoseconds.
func LifetimeStep(ns int64) int {
	v := uint64(max(0, ns))
	n := int(lifetimeStarts[bits.Len64(v)])
	for n+1 < lifetimeBins && v >= lifetimeBounds[n+1] {
		n++
	}
	return n
}

// lifetimeStarts holds, by the length of a number in bits, the step of the least
// number of that length.
var lifetimeStarts = func() (starts [65]uint8) {
	for length := range starts {
		least := uint64(1) << length >> 1
		for n, bound := range lifetimeBounds {
			if bound <= least {
				starts[length] = uint8(n)
			}
		}
	}
	return starts
}()

// Ended counts the lifetime of a freed block, in nanoseconds.
func (l *Lifetimes) Ended(ns int64) {
	l.ended[LifetimeStep(ns)]++
	l.all++
}

// enough is the smallest number of blocks for statements about lifetimes: 1 %
// of a hundred blocks is one block.
const enough = 100

// Usual returns the end of the step within which 99 of 100 blocks were freed,
// or 0 if fewer than 100 were freed. A block younger than that may still be
// freed like the others; an older one is unusual.
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
