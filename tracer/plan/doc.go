// Package plan decides what to probe, where and how, before anything is touched: which
// allocators a process has, which instruction of each of their functions a probe can sit
// on, which return instructions, C++ operators, functions of users and of resource modules
// are probed as well, and which of the kernel's mechanisms are used for that.
//
// [New] makes a [Plan] from [Options]. README.md in this folder is the map of the files.
package plan
