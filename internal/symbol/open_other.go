//go:build !unix

package symbol

const unblocked, noFollow = 0, 0
