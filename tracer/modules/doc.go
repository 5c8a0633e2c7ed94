// Package modules says which functions of libraries allocate and free things other than
// memory of the heap: descriptors, mappings, threads, locks. A module is rows of a table:
// a function, the places of its arguments, and what a call does. Package tracer puts
// the probes in and brings the calls; this package makes of them what changed hands.
//
// What each module tells is that of sp-rtrace's module of the same name where there is
// one (docs/modules.md has both).
package modules
