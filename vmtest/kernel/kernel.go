// Package kernel finds, downloads and unpacks Debian's kernels. It contains no versions: it
// takes the newest kernel of a series that the suites have.
package kernel

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"rtrace-bpf/vmtest/apt"
)

// ErrNotServed reports that no suite has a kernel of the series. Debian drops old ones.
var ErrNotServed = errors.New("no suite has a kernel of this series")

// Flavours of kernels.
const (
	// Cloud is small and has what an emulated machine needs, but no 9p.
	Cloud = "cloud"
	// Generic is the kernel for real machines.
	Generic = ""
)

// Choice is the packages of a kernel.
type Choice struct {
	Image apt.Package
	// Modules is a separate package in newer releases. Otherwise the modules are in Image.
	Modules apt.Package
}

// Release returns the release that uname prints, as far as the name of the package contains it.
func (c Choice) Release() string { return releaseOf(c.Image.Name) }

// There are two layouts. Up to about 6.18 linux-image-RELEASE contains everything. Later it is
// an empty package that depends on linux-binary-RELEASE with the kernel and on
// linux-modules-RELEASE.
const (
	imagePrefix   = "linux-image-"
	binaryPrefix  = "linux-binary-"
	modulesPrefix = "linux-modules-"
)

func releaseOf(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, imagePrefix), binaryPrefix)
}

// seriesForm matches a series: 6.12, or 7 for the newest of all 7.x.
var seriesForm = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

// Pattern returns a regular expression for the names of all packages that Choose needs for a
// series. arch is Debian's name.
func Pattern(series, flavour, arch string) (string, error) {
	if !seriesForm.MatchString(series) {
		return "", fmt.Errorf("series %q: want a number like 6.12, or 7 for the newest 7.x", series)
	}
	return fmt.Sprintf("^linux-(image|binary|modules)-%s%s$", regexp.QuoteMeta(series)+`([.~+][^-]+)?(-[0-9][^-]*)?`, suffix(flavour, arch)), nil
}

func suffix(flavour, arch string) string {
	if flavour == Generic {
		return "-" + arch
	}
	return "-" + flavour + "-" + arch
}

// Choose returns the newest kernel among packages that match Pattern.
func Choose(all []apt.Package) (Choice, error) {
	// A release with a separate package for the kernel has an empty image package.
	split := make(map[string]bool)
	for _, p := range all {
		if strings.HasPrefix(p.Name, binaryPrefix) {
			split[releaseOf(p.Name)] = true
		}
	}
	var best apt.Package
	for _, p := range all {
		switch {
		case strings.HasPrefix(p.Name, modulesPrefix):
		case strings.HasPrefix(p.Name, imagePrefix) && split[releaseOf(p.Name)]:
		case strings.Contains(p.Summary, "meta-package"): // depends on the newest
		case best.Name == "" || apt.CompareVersions(p.Version, best.Version) > 0:
			best = p
		}
	}
	if best.Name == "" {
		return Choice{}, ErrNotServed
	}
	c := Choice{Image: best}
	for _, p := range all {
		if p.Name == modulesPrefix+c.Release() {
			c.Modules = p
		}
	}
	return c, nil
}
