package main

import (
	"os"
	"runtime"
	"slices"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// multiarch is Debian's name for the machine of the tests.
var multiarch = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH] + "-linux-gnu"

// needLibrary skips the test in a virtual machine without the library.
func needLibrary(t *testing.T, name string) {
	t.Helper()
	testutil.Extra(t, "GLib and Qt")
	if arch := os.Getenv("GOARCH"); testutil.Preparing() && arch != "" && arch != runtime.GOARCH {
		t.Skipf("SKIPPED: guests of another machine have no %s", name)
	}
	_, err := os.Stat("/usr/lib/" + multiarch + "/" + name)
	if err == nil {
		return
	}
	if testutil.GuestLacks("go") { // as in every guest
		t.Skipf("SKIPPED-GUEST: this virtual machine was made without %s", name)
	}
	t.Fatalf("%v (make need-test-all installs it)", err)
}

// The traces of the modules for GLib and Qt contain what a program did, call for call.
func TestModulesOfLibraries(t *testing.T) {
	qt := func(headers string) []string {
		return []string{"-I/usr/include/" + multiarch + "/" + headers, "-I/usr/include/" + multiarch + "/" + headers + "/QtCore", "-fPIC"}
	}
	for name, it := range map[string]struct {
		module, needs, program string
		flags                  []string
	}{
		"GLib": {"gobject", "libgobject-2.0.so.0", "resources_glib", []string{
			"-I/usr/include/glib-2.0", "-I/usr/lib/" + multiarch + "/glib-2.0/include", "-lgobject-2.0", "-lglib-2.0",
		}},
		"Qt 5": {"qobject", "libQt5Core.so.5", "resources_qt", append(qt("qt5"), "-lQt5Core")},
		"Qt 6": {"qobject", "libQt6Core.so.6", "resources_qt", append(qt("qt6"), "-std=c++17", "-lQt6Core")},
	} {
		t.Run(name, func(t *testing.T) {
			needLibrary(t, it.needs)
			program := testutil.Build(t, it.program, it.flags...)
			for way, flags := range kernelWays(t) {
				t.Run(way, func(t *testing.T) {
					l := launchCommand(t, slices.Concat([]string{"-e", it.module, "-q"}, flags), program)
					l.ends(0)
					equalResources(t, resourceLines(l.records()), string(l.Output()), true)
				})
			}
		})
	}
}
