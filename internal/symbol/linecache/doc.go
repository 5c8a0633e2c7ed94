// Package linecache keeps answers from debugging information from one run to the next:
// functions, including inlined ones, files and lines. Reading the debugging information of
// a file takes some hundred times as long as reading the kept answers. Symbols are not
// kept, because reading them is just as fast.
//
// A file of the cache belongs to one ELF file that was found at one path. It lists all
// files that were consulted for its answers, with their sizes and times. If one of them has
// changed, has appeared or has been removed, the whole file is ignored. So an answer from
// the cache is the one that would be found again.
//
// The folder belongs to the user who runs the program, and nobody else may read it. Files
// appear only when they are complete. Each has a checksum and is ignored if the checksum is
// wrong. If the files exceed the limit, the least recently used ones are removed first.
package linecache
