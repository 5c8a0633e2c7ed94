package wrapper_test

import (
	"testing"

	"rtrace-bpf/internal/wrapper"
)

// TestHas has names as programs have them: from addr2line, llvm-symbolizer and gdb.
func TestHas(t *testing.T) {
	for _, tt := range []struct {
		function string
		want     bool
	}{
		// C and its libraries
		{"malloc", true},
		{"__libc_malloc", true},
		{"strdup", true},
		{"main", false},
		{"mallocate", false},
		{"parse", false},
		{"xmalloc", true},
		{"xstrdup", true},
		{"xrealloc", true},
		{"xnmalloc", true},
		{"xzalloc", true},
		{"x2nrealloc", true},
		{"xcharalloc", true},
		{"xalloc_die", false},
		{"xmalloc_test", false},
		// programs
		{"zmalloc", true},
		{"ztrymalloc_usable", true},
		{"ztrymalloc_usable_internal", true},
		{"zcalloc_num", true},
		{"zstrdup", true},
		{"zfree_later", false},
		{"ngx_alloc", true},
		{"ngx_palloc", true},
		{"ngx_pcalloc", true},
		{"ngx_palloc_large", true},
		{"ngx_create_pool", true},
		{"ngx_http_create_request", false},
		{"g_malloc", true},
		{"g_malloc0_n", true},
		{"g_try_realloc", true},
		{"g_strdup", true},
		{"g_slice_alloc", true},
		{"g_hash_table_new", false},
		{"_PyObject_Malloc", true},
		{"PyMem_RawMalloc", true},
		{"_PyMem_RawMalloc", true},
		{"PyObject_Realloc", true},
		{"_PyObject_GC_NewVar", true},
		{"PyType_GenericAlloc", true},
		{"_PyEval_EvalFrameDefault", false},
		{"PyList_New", false},
		{"palloc0", true},
		{"MemoryContextAllocZero", true},
		{"AllocSetAlloc", true},
		{"heap_form_tuple", false},
		{"os::malloc(unsigned long, MEMFLAGS)", true},
		{"AllocateHeap(unsigned long, MEMFLAGS)", true},
		{"Compile::Compile(ciEnv*)", false},
		// C++
		{"operator new(unsigned long)", true},
		{"_Znwm", true},
		{"operator new[](unsigned long)", true},
		{"ResourceObj::operator new(unsigned long)", true},
		{"Pool::operator new[](unsigned long)", true},
		{"Pool::renew(unsigned long)", false},
		{"std::vector<int, std::allocator<int> >::push_back(int const&)", true},
		{"void std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int*, int&&)", true},
		{"__gnu_cxx::new_allocator<int>::allocate(unsigned long, void const*)", true},
		{"_ZNSt6vectorIiSaIiEE9push_backERKi", true},
		{"_ZN9__gnu_cxx13new_allocatorIiE8allocateEmPKv", true},
		{"app::Cache::insert(std::string const&)", false},
		{"std::string app::name()", false},
		{"std::vector<int> app::make<int>(int)", false},
		{"(anonymous namespace)::load(char const*)", false},
		{"core::Graph::add(int)", false},
		{"alloc::Pool::grow(unsigned long)", false},
		{"bool operator< <int>(std::vector<int> const&, std::vector<int> const&)", false},
		{"App::operator()(int) const", false},
		// Rust
		{"alloc::alloc::alloc", true},
		{"alloc::raw_vec::RawVec<T,A>::reserve::do_reserve_and_handle", true},
		{"<alloc::vec::Vec<T,A> as core::clone::Clone>::clone", true},
		{"<T as alloc::vec::spec_from_elem::SpecFromElem>::from_elem", true},
		{"<[T] as alloc::slice::hack::ConvertVec>::to_vec", true},
		{"hashbrown::raw::RawTable<T,A>::reserve_rehash", true},
		{"core::iter::traits::iterator::Iterator::collect", true},
		{"<shop::Order as core::clone::Clone>::clone", false},
		{"<shop::Order as alloc::string::ToString>::to_string", false},
		{"shop::load", false},
		{"shop::load::{{closure}}", false},
		{"shop::Cache<alloc::vec::Vec<u8>>::insert", false},
		{"<shop::Cache<alloc::vec::Vec<u8>> as core::fmt::Debug>::fmt", false},
		{"__rust_alloc", true},
		{"__rdl_alloc", true},
		{"__rustc::__rust_alloc_zeroed", true},
		// Go
		{"_cgo_1b2c3d_Cfunc__Cmalloc", true},
		{"_cgo_1b2c3d_Cfunc_grow", false},
		{"runtime.mallocgc", false},
	} {
		l := new(wrapper.List)
		if got := l.Has(&wrapper.Frame{Function: tt.function, Module: "/opt/prog"}); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.function, got, tt.want)
		}
	}
}

func TestHasFiles(t *testing.T) {
	l := new(wrapper.List)
	for want, frames := range map[bool][]wrapper.Frame{
		true: {
			{Module: "/usr/lib/x86_64-linux-gnu/libc.so.6"},
			{Function: "operator()", File: "/usr/include/c++/12/bits/stl_algo.h", Module: "/opt/prog"},
			{Function: "grow", Namespace: "std", Module: "/opt/prog"},
			{Function: "grow", File: "/rustc/90b35a6239c3d8bdabc530a6a0816f7ff89a0aaf/library/alloc/src/raw_vec.rs"},
		},
		false: {
			{},
			{Module: "/opt/prog"},
			{Module: "/usr/lib/libcrypto.so.3"},
			{Function: "grow", Namespace: "app", File: "/src/c++/grow.cc"},
		},
	} {
		for _, f := range frames {
			if l.Has(&f) != want {
				t.Errorf("%+v: %v", f, !want)
			}
		}
	}
}

func TestSkip(t *testing.T) {
	l, err := wrapper.New([]string{`^my_`, `libglib`})
	if err != nil {
		t.Fatal(err)
	}
	for f, want := range map[wrapper.Frame]bool{
		{Function: "my_alloc"}:                  true,
		{Function: "not_my_alloc"}:              false,
		{Module: "/usr/lib/libglib-2.0.so.0"}:   true,
		{Function: "malloc"}:                    true,
		{Function: "main", Module: "/opt/prog"}: false,
	} {
		if l.Has(&f) != want {
			t.Errorf("%+v: %v", f, !want)
		}
	}
	if wrapper.None.Has(&wrapper.Frame{Function: "malloc"}) {
		t.Error("the empty list has malloc")
	}
	if _, err := wrapper.New([]string{"("}); err == nil {
		t.Error("( is no error")
	}
}

func TestFirst(t *testing.T) {
	for want, names := range map[int][][]string{
		0: {{"main"}, {"malloc"}, {"f", "malloc"}, {"strdup", "malloc"}, {"operator new(unsigned long)"}},
		1: {{"malloc", "main", "zmalloc"}, {"malloc", "strdup"}, {"malloc", "realloc"}},
		2: {{"operator new(unsigned long)", "std::string::reserve(unsigned long)", "app::load()", "main"}},
	} {
		for _, stack := range names {
			l := new(wrapper.List)
			if got := l.First(len(stack), func(i int) wrapper.Frame { return wrapper.Frame{Function: stack[i]} }); got != want {
				t.Errorf("%q: %d, want %d", stack, got, want)
			}
		}
	}
}
