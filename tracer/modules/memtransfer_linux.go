package modules

import (
	"rtrace-bpf/trace"
)

const transferResource = "memtransfer"

// wide is the size of a wchar_t in bytes, on every supported machine.
const wide = 4

// memtransfer is the module for bytes that are copied or filled. Nothing frees them. In a C
// library some of these functions end in a jump to others, or run on into them. That is one
// transfer, by the function that was called. Transfers of the library itself do not count.
var memtransfer = Module{
	Name: "memtransfer", Desc: "bytes that are copied or filled",
	Resources: []trace.Resource{{Type: transferResource, Desc: "memory transfer operations in bytes"}},
	rows: []row{
		transfer("ppx", 1, counted(2), "memcpy", "__memcpy_chk"),
		transfer("ppx", 1, counted(2), "memmove", "__memmove_chk"),
		transfer("ppx", 1, counted(2), "mempcpy", "__mempcpy_chk"),
		transfer("ppx", 0, counted(2), "bcopy"),
		transfer("pdx", 0, counted(2), "memset", "__memset_chk", "__explicit_bzero_chk"),
		transfer("px", 0, counted(1), "bzero", "explicit_bzero"),
		transfer("pL", 1, measured(1), "strcpy", "__strcpy_chk"),
		transfer("pL", 1, measured(1), "stpcpy", "__stpcpy_chk"),
		transfer("pL", 1, measured(1), "strcat", "__strcat_chk"),
		transfer("ppx", 1, counted(2), "strncpy", "__strncpy_chk"),
		transfer("ppx", 1, counted(2), "stpncpy", "__stpncpy_chk"),
		transfer("ppx", 1, counted(2), "strncat", "__strncat_chk"),
		transfer("L", 0, measured(0), "strdup"),
		transfer("px", 0, counted(1), "strndup"),
		transfer("ppx", 1, wideCounted(2), "wmemcpy", "__wmemcpy_chk"),
		transfer("ppx", 1, wideCounted(2), "wmemmove", "__wmemmove_chk"),
		transfer("ppx", 1, wideCounted(2), "wmempcpy", "__wmempcpy_chk"),
		transfer("pdx", 0, wideCounted(2), "wmemset", "__wmemset_chk"),
		transfer("pU", 1, wideMeasured(1), "wcscpy", "__wcscpy_chk"),
		transfer("pU", 1, wideMeasured(1), "wcpcpy", "__wcpcpy_chk"),
		transfer("pU", 1, wideMeasured(1), "wcscat", "__wcscat_chk"),
		transfer("ppx", 1, wideCounted(2), "wcsncpy", "__wcsncpy_chk"),
		transfer("ppx", 1, wideCounted(2), "wcpncpy", "__wcpncpy_chk"),
		transfer("ppx", 1, wideCounted(2), "wcsncat", "__wcsncat_chk"),
		transfer("U", 0, wideMeasured(0), "wcsdup"),
		// These are not recorded. They are needed to recognise that a function they jump to was
		// not called by the program.
		{symbols: []string{"calloc", "memccpy"}, first: firstOfTransfer, passed: true},
	},
}

// transfer returns a row for a transfer that begins at an argument, from 0: the source, or the
// memory that is filled.
func transfer(args string, from int, size num, symbols ...string) row {
	return row{symbols: symbols, args: args, first: firstOfTransfer, passed: true, does: []step{func(c *call) {
		c.alloc(transferResource, c.word(from), size(c))
	}}}
}

var firstOfTransfer = notJumped(func(from, to string) bool { return from != to })

func counted(n int) num { return arg(n) }

func wideCounted(n int) num { return func(c *call) uint64 { return wide * c.word(n) } }

func measured(n int) num { return func(c *call) uint64 { return textLength(c, n, 1) } }

func wideMeasured(n int) num { return func(c *call) uint64 { return wide * textLength(c, n, wide) } }

// textLength returns the number of characters of the text in an argument, each of unit bytes. If
// the text was not in memory when the call began, it is measured now, and counts as empty if it is
// gone.
func textLength(c *call, n, unit int) uint64 {
	if length, ok := c.entry.Measured(); ok {
		return length
	}
	if c.measure == nil {
		return 0
	}
	length, _ := c.measure(c.word(n), unit)
	return length
}
