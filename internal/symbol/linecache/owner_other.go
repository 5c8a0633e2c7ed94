//go:build !unix

package linecache

import "io/fs"

// private and trusted say nothing: folders have no owners that package os knows.
func private(fs.FileInfo) bool { return true }

func trusted(fs.FileInfo) bool { return true }
