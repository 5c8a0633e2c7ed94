package resolve

import (
	"path"
	"slices"
	"strings"

	"rtrace-bpf/internal/symbol/lines"
)

// runtimeLibraries are those of the C library, of compilers and of allocators, by name
// without a version.
var runtimeLibraries = []string{
	"ld", "ld64", "libanl", "libc", "libdl", "libm", "libpthread", "libresolv", "librt", "libuClibc", "libutil",
	"libc++", "libc++abi", "libgcc_s", "libstdc++", "libsupc++",
	"libdmalloc", "libduma", "libefence", "libhoard", "libjemalloc", "libmimalloc", "libmpatrol", "libmpatrolmt", "libnedmalloc",
	"libptmalloc3", "librpmalloc", "libscudo", "libsnmallocshim", "libtbbmalloc", "libtbbmalloc_proxy", "libtcmalloc",
	"libtcmalloc_debug", "libtcmalloc_minimal", "libtcmalloc_minimal_debug", "libumem",
	"libasan", "libhwasan", "liblsan", "libtsan",
}

// isRuntime reports whether a file is one of those libraries.
func isRuntime(file string) bool {
	name, version, ok := strings.Cut(path.Base(file), ".so")
	if !ok || version != "" && version[0] != '.' && version[0] != ' ' { // " (deleted)"
		return false
	}
	if strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl-") || strings.HasPrefix(name, "libc.musl-") {
		return true
	}
	// Old versions of glibc are called libc-2.31.so.
	if i := strings.LastIndexByte(name, '-'); i >= 0 && strings.Trim(name[i+1:], "0123456789.") == "" {
		name = name[:i]
	}
	return slices.Contains(runtimeLibraries, name)
}

// allocators are functions that allocate and free.
var allocators = map[string]bool{
	"malloc": true, "calloc": true, "realloc": true, "reallocarray": true, "free": true, "cfree": true, "memalign": true,
	"aligned_alloc": true, "posix_memalign": true, "valloc": true, "pvalloc": true,
	"operator new": true, "operator new[]": true, "operator new []": true,
	"operator delete": true, "operator delete[]": true, "operator delete []": true,
}

// prefixes may precede those names.
var prefixes = []string{"__libc_", "__GI___libc_", "__GI_", "__", "je_", "mi_", "tc_"}

// isAllocator reports whether a function with the given name, in the symbol table or in the
// source, allocates or frees.
func isAllocator(name string) bool {
	for _, p := range [...]string{"_Znw", "_Zna", "_Zdl", "_Zda"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	if open := strings.IndexByte(name, '('); open > 0 { // a text with parameters
		name = name[:open]
	}
	if allocators[name] {
		return true
	}
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(name, p); ok && allocators[rest] {
			return true
		}
	}
	return false
}

// copiers are functions of the C library that return memory for the caller to free. They
// matter where the library is linked into the program.
var copiers = map[string]bool{
	"strdup": true, "strndup": true, "wcsdup": true, "asprintf": true, "vasprintf": true, "getline": true, "getdelim": true,
	"__strdup": true, "__strndup": true,
}

// runtimeSpaces are the namespaces of C++ libraries.
var runtimeSpaces = []string{"std", "__gnu_cxx", "__gnu_debug", "__cxxabiv1"}

// isWrapper reports whether a frame belongs to a function that allocates on behalf of the
// program. It may be in any file, because it may be inlined or linked in.
func isWrapper(f *lines.Frame) bool {
	return isAllocator(f.Function) || copiers[f.Function] || inRuntimeSpace(f.Function) || slices.Contains(runtimeSpaces, f.Namespace)
}

// inRuntimeSpace reports whether a mangled C++ name belongs to a namespace of C++
// libraries. In the Itanium ABI a nested name is _ZN, qualifiers, and the names with their
// lengths. std has the short form St, and its most used classes Sa, Sb, Ss, Si, So and Sd.
// A local name has a Z before its function.
func inRuntimeSpace(name string) bool {
	rest, ok := strings.CutPrefix(name, "_Z")
	if !ok {
		return false
	}
	rest = strings.TrimLeft(rest, "Z")
	if nested, ok := strings.CutPrefix(rest, "N"); ok {
		rest = strings.TrimLeft(nested, "rVKRO")
		for _, space := range [...]string{"9__gnu_cxx", "11__gnu_debug", "10__cxxabiv1"} {
			if strings.HasPrefix(rest, space) {
				return true
			}
		}
	}
	return len(rest) > 1 && rest[0] == 'S' && strings.IndexByte("tabsiod", rest[1]) >= 0
}
