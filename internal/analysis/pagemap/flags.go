package pagemap

import "strings"

// Flag is a bit of /proc/kpageflags (linux/kernel-page-flags.h). The bits from
// 48 on are not the kernel's: they replace bits that have another meaning in
// pages of the slab allocator, and reclaim in pages that are not being written
// back.
type Flag struct {
	Mark byte   // a letter; a few letters mark two bits
	Name string // as in the kernel's tool page-types
	Text string // what it means
}

// Bits that [Shown] and [Page.Dirty] use.
const (
	flagError      = 1 << 1
	flagDirty      = 1 << 4
	flagActive     = 1 << 6
	flagSlab       = 1 << 7
	flagWriteback  = 1 << 8
	flagReclaim    = 1 << 9
	flagSwapCache  = 1 << 13
	flagSwapBacked = 1 << 14
	flagCompound   = 1<<15 | 1<<16
	flagHuge       = 1 << 17
	flagPrivate    = 1 << 35
	flagReadahead  = 1 << 48
	flagSlobFree   = 1 << 49
	flagSlubFrozen = 1 << 50
	flagSlubDebug  = 1 << 51

	// Bits that matter to kernel developers only.
	kernelDeveloperFlags = 0xffff << 32
)

// Flags describes the bits. Bits that are not used have a zero Flag.
var Flags = [64]Flag{
	0:  {'L', "locked", "locked for exclusive use, as while it is read or written"},
	1:  {'E', "error", "reading or writing it failed"},
	2:  {'R', "referenced", "used since it was last put into its LRU list"},
	3:  {'U', "uptodate", "its data are at least as new as those of its file"},
	4:  {'D', "dirty", "its data are newer than those of its file"},
	5:  {'l', "lru", "in a list of pages by use (LRU)"},
	6:  {'A', "active", "in the list of pages that are in use (active LRU)"},
	7:  {'S', "slab", "belongs to the kernel's allocator of small objects"},
	8:  {'W', "writeback", "being written to its file"},
	9:  {'I', "reclaim", "taken back as soon as it is written"},
	10: {'B', "buddy", "the first of a block of free pages"},
	11: {'M', "mmap", "mapped by a process"},
	12: {'a', "anonymous", "mapped, and of no file"},
	13: {'s', "swapcache", "has a place in swap"},
	14: {'b', "swapbacked", "would go to swap, not to a file"},
	15: {'H', "compound_head", "the first of several that are one"},
	16: {'T', "compound_tail", "of several that are one, and not the first"},
	17: {'G', "huge", "part of a page of hugetlbfs"},
	18: {'u', "unevictable", "never taken back, as after mlock"},
	19: {'X', "hwpoison", "the memory is broken"},
	20: {'n', "nopage", "there is no memory at the address"},
	21: {'x', "ksm", "shared by processes that have the same data there (KSM)"},
	22: {'t', "thp", "part of a transparent huge page"},
	23: {'o', "offline", "logically offline"},
	24: {'z', "zero_page", "the page of zeros that everybody reads"},
	25: {'i', "idle_page", "not used since it was marked idle"},
	26: {'g', "pgtable", "a page table"},

	32: {'r', "reserved", "not of the allocator of pages"},
	33: {'m', "mlocked", "locked into memory"},
	34: {'d', "mappedtodisk", "has a place on disk"},
	35: {'P', "private", "the file system keeps data with it"},
	36: {'p', "private_2", "the file system keeps more data with it"},
	37: {'O', "owner_private", "of use to its owner"},
	38: {'h', "arch", "of use to the architecture"},
	39: {'c', "uncached", "not cached by the processor"},

	48: {'I', "readahead", "the next pages of the file are read when it is used"},
	49: {'P', "slob_free", "has free objects (SLOB)"},
	50: {'A', "slub_frozen", "of one processor (SLUB)"},
	51: {'E', "slub_debug", "checked for errors (SLUB)"},
}

// Shown returns the bits of a page that a summary shows. It moves bits that
// have another meaning in this kind of page, and drops those for kernel
// developers and, unless the page is huge, those of compound pages.
func Shown(flags uint64) uint64 {
	if flags&flagSlab != 0 {
		for _, bit := range [...][2]uint64{{flagPrivate, flagSlobFree}, {flagActive, flagSlubFrozen}, {flagError, flagSlubDebug}} {
			if flags&bit[0] != 0 {
				flags ^= bit[0] | bit[1]
			}
		}
	}
	if flags&(flagReclaim|flagWriteback) == flagReclaim {
		flags ^= flagReclaim | flagReadahead
	}
	flags &^= kernelDeveloperFlags
	if flags&flagHuge == 0 {
		flags &^= flagCompound
	}
	return flags
}

// Mask returns the bits for a list of marks. Of two bits with the same mark it
// returns the kernel's. unknown is the first mark that is not one of Flags.
func Mask(marks string) (mask uint64, unknown string) {
	for _, c := range marks {
		bit := -1
		for i := range Flags {
			if 0 < c && c < 0x80 && Flags[i].Mark == byte(c) {
				bit = i
				break
			}
		}
		if bit < 0 {
			return 0, string(c)
		}
		mask |= 1 << bit
	}
	return mask, ""
}

// Marks returns one character for each bit of used: its mark if it is set in
// flags, else a dot.
func Marks(flags, used uint64) string {
	var b strings.Builder
	for i := range Flags {
		switch bit := uint64(1) << i; {
		case used&bit == 0:
		case flags&bit == 0:
			b.WriteByte('.')
		case Flags[i].Mark == 0:
			b.WriteByte('?')
		default:
			b.WriteByte(Flags[i].Mark)
		}
	}
	return b.String()
}
