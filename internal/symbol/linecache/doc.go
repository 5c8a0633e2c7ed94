// Package linecache keeps, from one run to the next, what debugging information
// said of addresses: functions, inlined ones too, files and lines. Reading the
// debugging information of a file takes some hundred times as long as reading
// what was kept of it. Symbols are not kept: they are read as fast.
//
// A file of the cache is of one ELF file as it was found at one path, and names all
// files that were looked for to answer, with their sizes and times. If one of them
// is another one now, was made or is gone, nothing of it is used. So an answer is
// the one that would be found again.
//
// The folder belongs to the user who runs the program and nobody else may look into
// it. Files appear when they are complete, have a checksum, and are of no use if it
// is wrong. What was not used for the longest time goes first when there are too
// many.
package linecache
