package wrapper

import "testing"

func TestIsRuntime(t *testing.T) {
	for name, want := range map[string]bool{
		"/lib/x86_64-linux-gnu/libc.so.6": true, "/lib/libc-2.31.so": true, "/lib/ld-2.31.so": true, "/lib64/ld-linux-x86-64.so.2": true,
		"/lib/ld-musl-x86_64.so.1": true, "/lib/libc.musl-x86_64.so.1": true, "/lib/libc.so": true, "libc.so.6": true,
		"/usr/lib/libstdc++.so.6.0.30": true, "/usr/lib/libc++.so.1": true, "/lib/libpthread-2.31.so": true, "/lib/libuClibc-0.9.33.2.so": true,
		"/usr/lib/libjemalloc.so.2": true, "/usr/lib/libtcmalloc_minimal.so.4": true, "/opt/libmimalloc.so (deleted)": true,
		"/usr/lib/libgcc_s.so.1": true,
		"/usr/bin/libc":          false, "/usr/lib/libcurl.so.4": false, "/usr/lib/libc-client.so.2": false, "/usr/lib/libcap-2.so": false,
		"/usr/lib/libm17n.so.0": false, "/bin/prog": false, "": false, "[vdso]": false, "/lib/libc.sock": false, "/usr/lib/libglib-2.0.so.0": false,
		"/lib/libcrypt.so.1": false,
	} {
		if got := IsRuntime(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func TestInMangledSpace(t *testing.T) {
	for name, want := range map[string]bool{
		"_ZSt4copyIPiS0_ET0_T_S2_S1_": true, "_ZNSt6vectorIiSaIiEE9push_backERKi": true, "_ZNKSt6vectorIiSaIiEE4sizeEv": true,
		"_ZNSs6appendEPKc": true, "_ZNKSs4sizeEv": true, "_ZNSaIcEC1Ev": true, "_ZNSolsEi": true, "_ZNRSt8optionalIiE5valueEv": true,
		"_ZN9__gnu_cxx13new_allocatorIiE8allocateEmPKv": true, "_ZNK9__gnu_cxx17__normal_iteratorIPiE4baseEv": true,
		"_ZZNSt3foo3barEvE1x": true, "_ZNSt3__16vectorIiE3fooEv": true, "_ZN10__cxxabiv117__class_type_infoD0Ev": true,
		"_Z3fooSt6vectorIiSaIiEE": false, "_ZN4item4growERSt6vectorIiSaIiEE": false, "main": false, "": false, "_Z": false, "_ZN": false,
		"_ZN2S13fooEv": false, "_ZplRKSsS0_": false, "St": false, "_ZN3std2io5stdio6_print17h0123456789abcdefE": false, "_ZL3foov": false,
	} {
		if got := inMangledSpace(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestIsAllocator(t *testing.T) {
	for name, want := range map[string]bool{
		"malloc": true, "__libc_malloc": true, "_Znwm": true, "_ZnamRKSt9nothrow_t": true, "_ZdlPvm": true, "je_malloc": true, "tc_realloc": true,
		"operator new": true, "operator new[](unsigned long)": true, "__libc_memalign": true,
		"new": false, "xmalloc": false, "main": false, "": false, "_ZdvRK1AS1_": false, "mallocator": false, "my_free": false,
	} {
		if got := IsAllocator(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
