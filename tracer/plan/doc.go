// Package plan decides what to probe, where and how, before anything is touched: which
// allocators a process has; on which instruction of each of their functions a probe sits;
// which return instructions, C++ operators, functions that the user named and functions of
// resource modules are probed as well; and which of the kernel's mechanisms are used.
//
// [New] makes a [Plan] from [Options]. README.md in this folder is the map of the files.
package plan
