// Package release holds what makes the files of a release, and the tests of these files:
// archives, packages for Debian and Fedora, container images, SBOMs and checksums. The
// script make does the work; docs/release.md describes it.
package release
