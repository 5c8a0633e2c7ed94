package cli

import (
	"runtime/debug"
)

// Version describes the build: the module's version or the revision it was
// built from, a mark if the tree had changes, the compiler and the platform.
// info is what debug.ReadBuildInfo returned; nil gives "(unknown)".
func Version(info *debug.BuildInfo) string {
	if info == nil {
		return "(unknown)"
	}
	settings := make(map[string]string, len(info.Settings))
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	version := info.Main.Version
	if version == "" {
		version = "(devel)"
	}
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

// BuildVersion is Version of the running program.
func BuildVersion() string {
	info, _ := debug.ReadBuildInfo()
	return Version(info)
}
