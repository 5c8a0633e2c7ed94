package record

import (
	"slices"
	"sort"
	"strings"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/process"
)

// mappings follows the executable mappings of a process and emits records of the changes.
type mappings struct {
	current []process.Mapping // sorted by address, without overlaps; there may be tens of thousands
	modules map[string]bool   // paths and build IDs already described
	file    func(process.Mapping) process.FileInfo
	emit    func(trace.Record)
	moved   func(process.Mapping, process.FileInfo) // called for every new mapping of a file
}

// add records that m appeared at time, and reports whether that is new. All mappings that
// m overlaps are gone, even the same mapping of the same file. Only if the same mapping
// was first seen at time or later is m already known: the kernel's record of it then came
// after all mappings were read.
func (ms *mappings) add(m process.Mapping, time uint64) bool {
	from, to := ms.overlapped(m)
	for _, old := range ms.current[from:to] {
		if old.Same(m) && old.Seen >= time {
			return false
		}
	}
	m.Seen = max(m.Seen, time)
	for _, old := range ms.current[from:to] {
		ms.gone(old, time)
	}
	ms.current = slices.Replace(ms.current, from, to, m)
	if !nameable(m) {
		return true
	}
	info := ms.file(m)
	if key := m.Path + "\x00" + info.BuildID; !ms.modules[key] {
		ms.modules[key] = true
		ms.emit(trace.Record{Kind: trace.KindModule, Time: int64(time), Module: trace.Module{
			Path: m.Path, BuildID: info.BuildID, Inode: m.Inode, Major: m.Major, Minor: m.Minor, Fixed: info.Fixed,
		}})
	}
	ms.emit(trace.Record{Kind: trace.KindMapping, Time: int64(time), Mapping: mappingRecord(m, info)})
	ms.moved(m, info)
	return true
}

// overlapped returns the range [from, to) of current mappings that m overlaps.
func (ms *mappings) overlapped(m process.Mapping) (from, to int) {
	from = sort.Search(len(ms.current), func(i int) bool { return ms.current[i].End > m.Start })
	for to = from; to < len(ms.current) && ms.current[to].Overlaps(m); to++ {
	}
	return from, to
}

// replace makes all, sorted by address, the mappings of the process. They were read
// between the times from and to. Mappings that are known to have appeared since from
// stay: they may have appeared before or after their place was read.
func (ms *mappings) replace(all []process.Mapping, from, to uint64) {
	ms.remove(to, func(old process.Mapping) bool {
		if old.Seen >= from {
			return false
		}
		i := sort.Search(len(all), func(i int) bool { return all[i].End > old.Start })
		return i == len(all) || old.Start < all[i].Start || old.End > all[i].End || old.Inode != all[i].Inode
	})
	for _, m := range all {
		i, end := ms.overlapped(m)
		if !slices.ContainsFunc(ms.current[i:end], func(old process.Mapping) bool {
			return old.Same(m) || old.Seen >= from && old.Overlaps(m)
		}) {
			m.Seen = to
			ms.add(m, to)
		}
	}
}

// clear removes all mappings seen before time, when the process replaced its program.
// Later ones belong to the new program.
func (ms *mappings) clear(time uint64) {
	ms.remove(time, func(old process.Mapping) bool { return old.Seen < time })
	for _, m := range ms.current {
		if nameable(m) {
			ms.moved(m, ms.file(m))
		}
	}
}

// seenSince reports whether m overlaps a mapping that was seen at time or later.
func (ms *mappings) seenSince(m process.Mapping, time uint64) bool {
	from, to := ms.overlapped(m)
	return slices.ContainsFunc(ms.current[from:to], func(old process.Mapping) bool { return old.Seen >= time })
}

// unknown returns those mappings in all, read from the time from on, that are not known
// although the kernel should have recorded them. The kernel writes no record for its own
// mappings, or when a mapping is split or merged.
func (ms *mappings) unknown(all []process.Mapping, from uint64) (out []process.Mapping) {
	for _, m := range all {
		if m.Path != process.Trampolines && m.Path != "[vsyscall]" && !ms.covers(m) && !ms.seenSince(m, from) {
			out = append(out, m)
		}
	}
	return out
}

// covers reports whether each address of m is in a known mapping of the same place in the
// same file.
func (ms *mappings) covers(m process.Mapping) bool {
	from, to := ms.overlapped(m)
	at := m.Start
	for _, old := range ms.current[from:to] {
		if old.Start > at || old.Inode != m.Inode || m.Inode != 0 && old.Start-old.Offset != m.Start-m.Offset {
			return false
		}
		at = old.End
	}
	return at >= m.End
}

// at returns the executable mapping that contains addr, or nil.
func (ms *mappings) at(addr uint64) *process.Mapping {
	i := sort.Search(len(ms.current), func(i int) bool { return ms.current[i].End > addr })
	if i < len(ms.current) && ms.current[i].Contains(addr) {
		return &ms.current[i]
	}
	return nil
}

// code reports whether addr is in an executable mapping.
func (ms *mappings) code(addr uint64) bool { return ms.at(addr) != nil }

// inFile reports whether addr is in an executable mapping of a file. The kernel's library
// (vDSO) counts as a file.
func (ms *mappings) inFile(addr uint64) bool {
	m := ms.at(addr)
	return m != nil && (m.Inode != 0 || m.Path == process.Vdso)
}

func (ms *mappings) remove(time uint64, gone func(process.Mapping) bool) {
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

// gone emits a record that a mapping is gone.
func (ms *mappings) gone(old process.Mapping, time uint64) {
	if nameable(old) {
		ms.emit(trace.Record{Kind: trace.KindUnmapping, Time: int64(time), Mapping: mappingRecord(old, process.FileInfo{})})
	}
}

// nameable reports whether addresses in m can be named: m maps a file, or code of the
// kernel.
func nameable(m process.Mapping) bool {
	return strings.HasPrefix(m.Path, "/") && !strings.HasPrefix(m.Path, "//anon") ||
		m.Path == process.Vdso || m.Path == "[vsyscall]"
}

// mappingRecord returns m in the form that traces contain.
func mappingRecord(m process.Mapping, info process.FileInfo) trace.Mapping {
	r := trace.Mapping{Start: m.Start, End: m.End, Offset: m.Offset, Path: m.Path}
	switch {
	case info.Known && info.Fixed:
		r.Base = m.Start
	case info.Known:
		r.Base = info.Bias
	default:
		r.Base = m.Start - m.Offset
	}
	return r
}
