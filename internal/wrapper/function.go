package wrapper

import (
	"regexp"
	"slices"
	"strings"
)

// allocators are functions that allocate and free.
var allocators = map[string]bool{
	"malloc": true, "calloc": true, "realloc": true, "reallocarray": true, "free": true, "cfree": true, "memalign": true,
	"aligned_alloc": true, "posix_memalign": true, "valloc": true, "pvalloc": true,
	"operator new": true, "operator new[]": true, "operator new []": true,
	"operator delete": true, "operator delete[]": true, "operator delete []": true,
}

// prefixes may precede those names.
var prefixes = []string{"__libc_", "__GI___libc_", "__GI_", "__", "je_", "mi_", "tc_"}

// IsAllocator reports whether a function with the given name, in the symbol table or in the
// source, allocates or frees.
func IsAllocator(name string) bool {
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

// wrappers are the names of functions of programs and libraries that pass on memory from
// malloc, and of copies of strings made with it. docs/symbols.md lists them.
var wrappers = regexp.MustCompile(`^(?:` + strings.Join([]string{
	// GNU programs and many others
	`x(?:m|c|z|re|nm|nre|charm?)?alloc(?:array|0)?`, `x2n?realloc`, `x(?:str|strn|mem)dup`, `xv?asprintf`,
	// Redis and its relatives
	`z(?:try)?(?:m|c|re)alloc(?:_\w+)?`, `zstrdup`, `extend_to_usable`,
	// nginx
	`ngx_(?:alloc|calloc|memalign|create_pool|p(?:c|n)?alloc|palloc_(?:small|large|block)|pmemalign)`,
	// GLib
	`g_(?:try_)?(?:malloc0?|realloc)(?:_n)?`, `g_slice_(?:alloc0?|copy)`, `g_strn?dup`, `g_memdup2?`, `g_aligned_alloc0?`,
	// CPython
	`_?Py(?:Object|Mem)_(?:Raw)?(?:Debug)?(?:Raw)?(?:Malloc|Calloc|Realloc)`, `_PyMem_Debug\w+`, `_?PyObject_(?:GC_)?(?:Alloc|Malloc|Calloc)(?:\.\w+)*`,
	`_PyObject_Arena\w+`, `pymalloc_alloc`, `allocate_from_new_pool`, `new_arena`, `arena_map\w+`, `gc_alloc`, `_PyObject_GC_New\w*`, `_PyObject_NewVar`, `_PyObject_New`,
	`_PyType_AllocNoTrack`, `PyType_GenericAlloc`,
	// PostgreSQL
	`(?:re)?palloc(?:0|_\w+)?`, `MemoryContextAlloc\w*`, `AllocSet(?:Alloc|Realloc)\w*`, `GenerationAlloc\w*`, `SlabAlloc\w*`,
	// APR, OpenSSL, SQLite, libuv, FFmpeg
	`apr_palloc\w*`, `CRYPTO_(?:m|z|re)alloc`, `CRYPTO_strn?dup`, `sqlite3_?(?:Db)?(?:Mem)?(?:M|m|Re|re)alloc\w*`, `uv__(?:m|c|re)alloc`, `av_(?:m|c|re)alloc\w*`,
	// HotSpot, V8, Node.js
	`os::(?:m|re)alloc`, `os::strdup`, `AllocateHeap`, `ReallocateHeap`, `v8::internal::(?:AllocWithRetry|Malloced::\w+|NewArray)`, `v8::base::(?:M|C|Re)alloc`,
	`node::(?:Unchecked)?(?:M|C|Re)alloc`,
	// Rust's and Go's own functions
	`(?:__rustc::)?__r(?:ust|dl|g|ustc)_\w*alloc\w*`, `_cgo_\w+_C2?func__CMalloc`, `_cgo_\w+_C2?func__Cmalloc`, `_Cfunc__CMalloc`,
}, "|") + `)$`)

// isWrapper reports whether a function allocates on behalf of others.
func isWrapper(name string) bool {
	if IsAllocator(name) || copiers[name] || inMangledSpace(name) || ofRust(name) {
		return true
	}
	name = qualified(name)
	if name == "" {
		return false
	}
	space, _, ok := strings.Cut(name, "::")
	if ok && slices.Contains(librarySpaces, space) {
		return true
	}
	name = untemplated(name)
	if at := strings.LastIndex(name, "::"); at >= 0 && IsAllocator(name[at+2:]) && strings.HasPrefix(name[at+2:], "operator ") {
		return true // that of a class
	}
	return IsAllocator(name) || copiers[name] || wrappers.MatchString(name)
}
