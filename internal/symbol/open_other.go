//go:build !unix

package symbol

const unblocked = 0
