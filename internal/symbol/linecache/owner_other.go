//go:build !unix

package linecache

import "io/fs"

// private and trusted always report true: package os knows no owners of folders here.
func private(fs.FileInfo) bool { return true }

func trusted(fs.FileInfo) bool { return true }
