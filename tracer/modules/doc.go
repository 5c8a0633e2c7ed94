// Package modules defines which functions of libraries allocate and free resources other than
// heap memory: descriptors, mappings, threads, locks. A module is a table; a row has a function,
// the places of its arguments, and the effects of a call. Package tracer attaches the probes and
// provides the calls; this package derives the allocations and frees from them.
//
// If sp-rtrace has a module of the same name, this one records the same (docs/modules.md
// describes both).
package modules
