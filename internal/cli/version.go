package cli

import (
	"cmp"
	"runtime/debug"
)

// linked is the version that the build sets with -ldflags -X (Makefile); empty for none.
var linked string

// Version describes the build: its version, the revision it was built from and a mark if the
// tree had changes, the compiler and the platform. The version is the linked one, or else
// the module's. info is the result of debug.ReadBuildInfo; nil gives "(unknown)".
func Version(info *debug.BuildInfo) string {
	if info == nil {
		return "(unknown)"
	}
	settings := make(map[string]string, len(info.Settings))
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	version := cmp.Or(linked, info.Main.Version, "(devel)")
	if rev := settings["vcs.revision"]; rev != "" {
		version += " revision " + rev[:min(len(rev), 12)]
		if settings["vcs.modified"] == "true" {
			version += " dirty"
		}
	}
	version += " " + info.GoVersion
	if os, arch := settings["GOOS"], settings["GOARCH"]; os != "" && arch != "" {
		version += " " + os + "/" + arch
	}
	return version
}

// BuildVersion returns the Version of the running program.
func BuildVersion() string {
	info, _ := debug.ReadBuildInfo()
	return Version(info)
}
