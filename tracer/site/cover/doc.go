// Package cover finds the instructions of an allocator's function at which the arguments of a
// call and the block that it will return are both known. A breakpoint there records the call
// without a return probe.
//
// The result is a [Plan]: a set of sites, each with a condition. The plan is right if every call
// that returns a block passes exactly one [Report] whose condition holds, and no other call does.
// That is a property of the paths through the function. [Find] decides it by abstract
// interpretation over the control-flow graph:
//
//   - Forwards: which registers and stack slots hold the arguments, which hold equal values, and
//     which hold zero. A call changes what the ABI lets it change.
//   - Backwards: which registers and slots hold the value that the function will return,
//     whichever way the call continues.
//   - A minimum cut divides the graph into the part before the report and the part after it. All
//     edges between them must be sites, and no edge leads back. So each path has exactly one.
//
// Whatever the interpretation does not know stops it. [Find] then returns an [Unproved] error with
// the instruction, and the function keeps its entry and return probe.
//
// The package is pure: it takes bytes and addresses and does not use files, processes or BPF. The
// plans of a tracer are made with it (tracer/plan).
package cover
