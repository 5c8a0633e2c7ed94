package wrapper

import (
	"path"
	"slices"
	"strings"
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

// IsRuntime reports whether a file is one of the libraries of C, C++, a compiler or an
// allocator.
func IsRuntime(file string) bool {
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
