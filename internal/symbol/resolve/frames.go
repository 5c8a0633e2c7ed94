package resolve

import (
	"path"
	"strconv"

	"rtrace-bpf/internal/frametext"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/symbol/lines"
)

// frames keeps the frames of one module.
type frames struct {
	bare      *frame // for addresses in no known function
	functions map[int]*frame
	places    map[uint64]*frame // by address in the file, where frames have lines
	bytes     int               // that the frames occupy
}

// maxTexts bounds the bytes of the frames of one module.
const maxTexts = 64 << 20

// function returns the frame of function i of f, or one without a function if i is negative.
func (k *frames) function(f *symbol.File, i int) *frame {
	if i < 0 {
		return k.bare
	}
	if fr, ok := k.functions[i]; ok {
		return fr
	}
	fr := k.named(f.At(i).Name)
	k.keep(fr)
	if k.functions == nil {
		k.functions = make(map[int]*frame)
	}
	k.functions[i] = fr
	return fr
}

// putPlace keeps the frame of an address in the file.
func (k *frames) putPlace(at uint64, fr *frame) {
	k.keep(fr)
	if k.places == nil {
		k.places = make(map[uint64]*frame)
	}
	k.places[at] = fr
}

// keep counts the memory of a frame and drops the others if the total is too large.
func (k *frames) keep(fr *frame) {
	const overhead = 128 // of a frame in its map
	n := overhead + len(fr.text) + len(fr.name)
	if k.bytes += n; k.bytes > maxTexts {
		clear(k.functions)
		clear(k.places)
		k.bytes = n
	}
}

// named returns the frame of the function with the given symbol name.
func (k *frames) named(name string) *frame {
	source, text := printed(name)
	return &frame{name: source, module: k.bare.module, text: text + " from " + k.bare.module}
}

// printed returns the name that a function has in the source, and its text: the name
// followed by "()" unless it includes the parameters.
func printed(name string) (source, text string) {
	source, mangled := symbol.Source(name)
	if mangled {
		return source, source
	}
	return source, source + "()"
}

// joined makes one frame of the functions that are active at an address, because the trace
// has one address for all of them. Inlined functions come first. Functions without a name
// are left out.
func (k *frames) joined(active []lines.Frame, fullPath bool) *frame {
	all := &frame{module: k.bare.module}
	for i := range active {
		fr := &active[i]
		if fr.Function == "" {
			continue
		}
		source, text := printed(fr.Function)
		if all.name == "" {
			all.name = source
		} else {
			all.text += frametext.InlinedBy
		}
		all.text += text
		if fr.File == "" || fr.Line == 0 {
			all.text += " from " + k.bare.module
			continue
		}
		file := symbol.Printable(fr.File)
		if !fullPath {
			file = path.Base(file)
		}
		all.text += " at " + file + ":" + strconv.Itoa(fr.Line)
	}
	if all.name == "" {
		return k.bare
	}
	return all
}

// vsyscallFunctions are the functions of the [vsyscall] page of x86-64, which are 1 KiB
// apart (Linux, arch/x86/include/uapi/asm/vsyscall.h).
var vsyscallFunctions = [...]string{"gettimeofday", "time", "getcpu"}

// vsyscall returns the frame of an address in the [vsyscall] page.
func (k *frames) vsyscall(addr uint64) *frame {
	const page, step = 0xffffffffff600000, 1024
	if i := (addr - page) / step; addr >= page && i < uint64(len(vsyscallFunctions)) {
		if k.functions == nil {
			k.functions = make(map[int]*frame)
		}
		if k.functions[int(i)] == nil {
			k.functions[int(i)] = k.named(vsyscallFunctions[i])
		}
		return k.functions[int(i)]
	}
	return k.bare
}
