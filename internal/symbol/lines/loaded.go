package lines

import "slices"

// unitData is what was read of a unit.
type unitData struct {
	functions functions
	lines     sourceLines
	bytes     int
}

// loadedUnits is the units that were read.
type loadedUnits struct {
	list  []*unit
	bytes int
	clock uint64
}

// use notes that a unit is used now.
func (l *loadedUnits) use(u *unit) {
	l.clock++
	u.used = l.clock
}

// add stores what was read of a unit. It drops other units if all occupy too much memory.
func (l *loadedUnits) add(u *unit, d *unitData) {
	for len(l.list) > 0 && l.bytes+d.bytes > maxLoaded {
		l.drop()
	}
	u.data = d
	u.split.use(d)
	l.list = append(l.list, u)
	l.bytes += d.bytes
}

// drop drops the least recently used unit.
func (l *loadedUnits) drop() {
	oldest := 0
	for i, u := range l.list {
		if u.used < l.list[oldest].used {
			oldest = i
		}
	}
	u := l.list[oldest]
	l.bytes -= u.data.bytes
	u.data, u.split = nil, nil
	l.list = slices.Delete(l.list, oldest, oldest+1)
}

// clear drops all units.
func (l *loadedUnits) clear() {
	for _, u := range l.list {
		u.data, u.split = nil, nil
	}
	l.list, l.bytes = nil, 0
}
