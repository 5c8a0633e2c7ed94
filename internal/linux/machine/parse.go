package machine

import "bytes"

// cpuTime is what a processor has done since boot, in clock ticks.
type cpuTime struct{ busy, idle uint64 }

// number reads the next number of a text. ok is false if there is none.
func number(text []byte) (n uint64, rest []byte, ok bool) {
	i := 0
	for i < len(text) && (text[i] == ' ' || text[i] == '\t') {
		i++
	}
	begin := i
	for i < len(text) && '0' <= text[i] && text[i] <= '9' {
		n = n*10 + uint64(text[i]-'0')
		i++
	}
	return n, text[i:], i > begin
}

// numbers fills to with numbers from a text and reports whether there were enough.
func numbers(text []byte, to []uint64) bool {
	for i := range to {
		n, rest, ok := number(text)
		if !ok {
			return false
		}
		to[i], text = n, rest
	}
	return true
}

// line splits the first line off a text.
func line(text []byte) (first, rest []byte) {
	first, rest, _ = bytes.Cut(text, []byte{'\n'})
	return first, rest
}

// word splits the first word off a text.
func word(text []byte) (first, rest []byte) {
	text = bytes.TrimLeft(text, " ")
	if i := bytes.IndexByte(text, ' '); i >= 0 {
		return text[:i], text[i:]
	}
	return text, nil
}

// parseCPUs reads /proc/stat into to, indexed by processor, and returns the number of
// processors that are on. Those that are off have no line and keep no time.
func parseCPUs(text []byte, to []cpuTime) (running int) {
	clear(to)
	_, text = line(text) // the sum of all processors
	for len(text) > 0 {
		var row []byte
		row, text = line(text)
		row, ok := bytes.CutPrefix(row, []byte("cpu"))
		if !ok {
			break
		}
		n, row, ok := number(row)
		// user, nice, system, idle, iowait, irq, softirq, steal
		var t [8]uint64
		if !ok || n >= uint64(len(to)) || !numbers(row, t[:]) {
			continue
		}
		to[n] = cpuTime{busy: t[0] + t[1] + t[2] + t[5] + t[6] + t[7], idle: t[3] + t[4]}
		running++
	}
	return running
}

// parseKilobytes returns the value of a line of /proc/meminfo or smaps_rollup in bytes; name
// includes the colon.
func parseKilobytes(text []byte, name string) (size uint64, ok bool) {
	for len(text) > 0 {
		var row []byte
		row, text = line(text)
		if len(row) > len(name) && string(row[:len(name)]) == name {
			n, _, ok := number(row[len(name):])
			return n << 10, ok
		}
	}
	return 0, false
}

// parseUsed returns how much memory is in use according to /proc/meminfo, in bytes.
func parseUsed(text []byte) uint64 {
	total, _ := parseKilobytes(text, "MemTotal:")
	available, ok := parseKilobytes(text, "MemAvailable:")
	if !ok || available > total {
		return 0
	}
	return total - available
}

// parseStatm returns sizes in pages: all memory, resident memory, and the part of it that is
// shared.
func parseStatm(text []byte) (virtual, resident, shared uint64, ok bool) {
	var n [3]uint64
	ok = numbers(text, n[:])
	return n[0], n[1], n[2], ok
}

// sectorSize is the unit of /proc/diskstats in bytes, whatever the disk uses.
const sectorSize = 512

// parseDisks sums up the disks in /proc/diskstats.
func parseDisks(text []byte, isDisk func(name string) bool) (d Disks) {
	for len(text) > 0 {
		var row, name []byte
		row, text = line(text)
		var device [2]uint64
		if !numbers(row, device[:]) {
			continue
		}
		_, row = word(row)
		_, row = word(row)
		name, row = word(row)
		// reads, merged, sectors, ms, writes, merged, sectors
		var n [7]uint64
		if !numbers(row, n[:]) || !isDisk(string(name)) {
			continue
		}
		d.Reads += n[0]
		d.BytesRead += n[2] * sectorSize
		d.Writes += n[4]
		d.BytesWritten += n[6] * sectorSize
	}
	return d
}

// parseInterfaces sums up /proc/net/dev, without the loopback interface.
func parseInterfaces(text []byte) (w Network) {
	_, text = line(text)
	_, text = line(text) // titles
	for len(text) > 0 {
		var row []byte
		row, text = line(text)
		name, row, ok := bytes.Cut(bytes.TrimLeft(row, " "), []byte{':'})
		// received: bytes, packets, errs, drop, fifo, frame, compressed, multicast; sent: bytes
		var n [9]uint64
		if !ok || string(name) == "lo" || !numbers(row, n[:]) {
			continue
		}
		w.Received += n[0]
		w.Sent += n[8]
	}
	return w
}

// parseTicks returns the processor time in /proc/PID/stat, in clock ticks.
func parseTicks(text []byte) (ticks uint64, ok bool) {
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return 0, false
	}
	text = text[end+1:]
	for range 11 { // fields 3 to 13
		_, text = word(text)
	}
	var n [2]uint64 // utime, stime
	ok = numbers(text, n[:])
	return n[0] + n[1], ok
}

// parsePresent returns the length of a list indexed by the processors in a text like "0-3,6".
func parsePresent(text []byte) int {
	last, ok := uint64(0), false
	for len(text) > 0 {
		n, rest, is := number(text)
		if is {
			last, ok = max(last, n), true
		} else {
			rest = text[1:]
		}
		text = rest
	}
	if !ok || last >= 1<<16 {
		return 0
	}
	return int(last) + 1
}

// parseMHz stores the frequencies of /proc/cpuinfo in to, in kHz, in the order of the
// processors that are on.
func parseMHz(text []byte, to []float32) {
	at := -1
	for len(text) > 0 {
		var row []byte
		row, text = line(text)
		title, value, ok := bytes.Cut(row, []byte{':'})
		if !ok {
			continue
		}
		switch string(bytes.TrimRight(title, "\t ")) {
		case "processor":
			if n, _, ok := number(value); ok && n < uint64(len(to)) {
				at = int(n)
			}
		case "cpu MHz":
			n, rest, ok := number(value)
			if !ok || at < 0 {
				continue
			}
			to[at] = float32(n) * 1000
			if len(rest) > 3 && rest[0] == '.' {
				thousandths, _, _ := number(rest[1:4])
				to[at] += float32(thousandths)
			}
		}
	}
}

// between returns how much a counter has grown, and 0 if it went back: the time that a
// processor waited for disks does that, and so do sums when a device is removed.
func between(before, now uint64) uint64 {
	if now < before {
		return 0
	}
	return now - before
}

// since returns the difference to an earlier state.
func (d *Disks) since(was *Disks) Disks {
	return Disks{
		between(was.Reads, d.Reads), between(was.BytesRead, d.BytesRead),
		between(was.Writes, d.Writes), between(was.BytesWritten, d.BytesWritten),
	}
}

// since returns the difference to an earlier state.
func (w *Network) since(was *Network) Network {
	return Network{between(was.Sent, w.Sent), between(was.Received, w.Received)}
}

// percent returns used as a percentage of the time of all processors.
func percent(used int64, capacity float64) float32 {
	if capacity <= 0 || used <= 0 {
		return 0
	}
	return float32(min(100*float64(used)/capacity, 100))
}
