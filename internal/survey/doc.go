// Package survey reads where the resident memory of a process is, and makes the document of
// package explain of it. It places no probes and does not stop the process.
//
// Each mapping belongs to a row; parts of anonymous mappings that are recognised by what is in
// them (arenas of malloc, blocks with mappings of their own, stacks) belong to rows of their own.
// How each is recognised, and the limits, are in docs/design/explain.md.
package survey
