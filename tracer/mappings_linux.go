package tracer

import (
	"slices"
	"sort"
	"strings"

	"rtrace-bpf/trace"
)

// mappings follows the executable mappings of a process and tells what
// changed, as records.
type mappings struct {
	current []mapping       // ordered; none overlaps another one. There may be tens of thousands
	modules map[string]bool // paths and build-ids already described
	file    func(mapping) fileInfo
	emit    func(trace.Record)
	moved   func(mapping, fileInfo) // is told of every new mapping of a file
}

// add records that m appeared, and says whether that is news. What it overlaps is
// gone, even a mapping of the same file at the same place, unless that was first
// seen at time or later: then the kernel's record of it has come behind a look at
// all mappings.
func (ms *mappings) add(m mapping, time uint64) bool {
	from, to := ms.overlapped(m)
	for _, old := range ms.current[from:to] {
		if old.same(m) && old.seen >= time {
			return false
		}
	}
	m.seen = max(m.seen, time)
	for _, old := range ms.current[from:to] {
		ms.gone(old, time)
	}
	ms.current = slices.Replace(ms.current, from, to, m)
	if !named(m) {
		return true
	}
	info := ms.file(m)
	if key := m.path + "\x00" + info.buildID; !ms.modules[key] {
		ms.modules[key] = true
		ms.emit(trace.Record{Kind: trace.KindModule, Time: int64(time), Module: trace.Module{
			Path: m.path, BuildID: info.buildID, Inode: m.inode, Major: m.major, Minor: m.minor, Fixed: info.fixed,
		}})
	}
	ms.emit(trace.Record{Kind: trace.KindMapping, Time: int64(time), Mapping: mappingRecord(m, info)})
	ms.moved(m, info)
	return true
}

// overlapped returns which of the current mappings m overlaps: [from, to).
func (ms *mappings) overlapped(m mapping) (from, to int) {
	from = sort.Search(len(ms.current), func(i int) bool { return ms.current[i].end > m.start })
	for to = from; to < len(ms.current) && ms.current[to].overlaps(m); to++ {
	}
	return from, to
}

// replace makes known all the mappings of the process, ordered, which were read
// between the times from and to. What is known to have appeared meanwhile stays as it
// is: the reading may have been before or behind it.
func (ms *mappings) replace(all []mapping, from, to uint64) {
	ms.remove(to, func(old mapping) bool {
		if old.seen >= from {
			return false
		}
		i := sort.Search(len(all), func(i int) bool { return all[i].end > old.start })
		return i == len(all) || old.start < all[i].start || old.end > all[i].end || old.inode != all[i].inode
	})
	for _, m := range all {
		i, end := ms.overlapped(m)
		if !slices.ContainsFunc(ms.current[i:end], func(old mapping) bool {
			return old.same(m) || old.seen >= from && old.overlaps(m)
		}) {
			m.seen = to
			ms.add(m, to)
		}
	}
}

// clear forgets everything that was there before time, when the program was replaced.
// What was seen later is the new program's.
func (ms *mappings) clear(time uint64) {
	ms.remove(time, func(old mapping) bool { return old.seen < time })
	for _, m := range ms.current {
		if named(m) {
			ms.moved(m, ms.file(m))
		}
	}
}

// seenSince reports whether something that m overlaps was seen to be there at time or
// later.
func (ms *mappings) seenSince(m mapping, time uint64) bool {
	from, to := ms.overlapped(m)
	return slices.ContainsFunc(ms.current[from:to], func(old mapping) bool { return old.seen >= time })
}

// unknown returns those of all the mappings of the process, read from the time from on,
// that should have had a record and are not known. Parts of a known mapping and several
// that have become one have none, nor have the kernel's own.
func (ms *mappings) unknown(all []mapping, from uint64) (out []mapping) {
	for _, m := range all {
		if m.path != trampolines && m.path != "[vsyscall]" && !ms.covers(m) && !ms.seenSince(m, from) {
			out = append(out, m)
		}
	}
	return out
}

// covers reports whether each address of m is in a known mapping of the same file, at
// the same place of it.
func (ms *mappings) covers(m mapping) bool {
	from, to := ms.overlapped(m)
	at := m.start
	for _, old := range ms.current[from:to] {
		if old.start > at || old.inode != m.inode || m.inode != 0 && old.start-old.offset != m.start-m.offset {
			return false
		}
		at = old.end
	}
	return at >= m.end
}

// at returns the executable mapping that addr is in, or nil.
func (ms *mappings) at(addr uint64) *mapping {
	i := sort.Search(len(ms.current), func(i int) bool { return ms.current[i].end > addr })
	if i < len(ms.current) && ms.current[i].contains(addr) {
		return &ms.current[i]
	}
	return nil
}

// code says whether addr is in an executable mapping.
func (ms *mappings) code(addr uint64) bool { return ms.at(addr) != nil }

// inFile says whether addr is in an executable mapping of a file, as which the
// kernel's library counts.
func (ms *mappings) inFile(addr uint64) bool {
	m := ms.at(addr)
	return m != nil && (m.inode != 0 || m.path == vdso)
}

func (ms *mappings) remove(time uint64, gone func(mapping) bool) {
	kept := ms.current[:0]
	for _, old := range ms.current {
		if !gone(old) {
			kept = append(kept, old)
			continue
		}
		ms.gone(old, time)
	}
	ms.current = kept
}

// gone records that a mapping is no longer there.
func (ms *mappings) gone(old mapping, time uint64) {
	if named(old) {
		ms.emit(trace.Record{Kind: trace.KindUnmapping, Time: int64(time), Mapping: mappingRecord(old, fileInfo{})})
	}
}

// named says whether addresses in m can be named: it is a file or an area of
// the kernel's with code.
func named(m mapping) bool {
	return strings.HasPrefix(m.path, "/") && !strings.HasPrefix(m.path, "//anon") ||
		m.path == vdso || m.path == "[vsyscall]"
}

// mappingRecord returns m as traces hold it.
func mappingRecord(m mapping, info fileInfo) trace.Mapping {
	r := trace.Mapping{Start: m.start, End: m.end, Offset: m.offset, Path: m.path}
	switch {
	case info.known && info.fixed:
		r.Base = m.start
	case info.known:
		r.Base = info.bias
	default:
		r.Base = m.start - m.offset
	}
	return r
}
