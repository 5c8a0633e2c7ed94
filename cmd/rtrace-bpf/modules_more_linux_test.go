package main

import (
	"os"
	"runtime"
	"slices"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// multiarch is how Debian calls the machine of the tests.
var multiarch = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH] + "-linux-gnu"

// needLibrary skips the test in a virtual machine that was made without a library.
func needLibrary(t *testing.T, name string) {
	t.Helper()
	if arch := os.Getenv("GOARCH"); testutil.Preparing() && arch != "" && arch != runtime.GOARCH {
		t.Skipf("SKIPPED: guests of another machine have no %s", name)
	}
	_, err := os.Stat("/usr/lib/" + multiarch + "/" + name)
	if err == nil {
		return
	}
	if testutil.GuestLacks("go") { // as all of them do
		t.Skipf("SKIPPED-GUEST: this virtual machine was made without %s", name)
	}
	t.Fatalf("%v (make need-test installs it)", err)
}

// The modules for GLib and Qt tell what a program has done, call for call.
func TestModulesOfLibraries(t *testing.T) {
	build := map[string]func(t *testing.T) string{
		"gobject": func(t *testing.T) string {
			needLibrary(t, "libgobject-2.0.so.0")
			return testutil.Build(t, "things_glib", "-I/usr/include/glib-2.0", "-I/usr/lib/"+multiarch+"/glib-2.0/include",
				"-lgobject-2.0", "-lglib-2.0")
		},
		"qobject": func(t *testing.T) string {
			needLibrary(t, "libQt5Core.so.5")
			return testutil.Build(t, "things_qt", "-I/usr/include/"+multiarch+"/qt5", "-I/usr/include/"+multiarch+"/qt5/QtCore",
				"-fPIC", "-lQt5Core")
		},
	}
	for module, build := range build {
		t.Run(module, func(t *testing.T) {
			program := build(t)
			for way, flags := range map[string][]string{"auto": nil, "old kernel": oldKernel} {
				t.Run(way, func(t *testing.T) {
					l := launchCommand(t, slices.Concat([]string{"-e", module, "-q"}, flags), program)
					l.ends(0)
					equalThings(t, thingLines(l.records()), string(l.Output()), true)
				})
			}
		})
	}
}
