// Package resolve gives the addresses of a trace their function names.
//
// A [Resolver] follows the mappings of a trace in their order and names
// addresses from the files that are mapped at that moment. A [Reader] is a
// filter that does so for the frames of all calls.
//
// An address is found in a file through the file's own program headers, because formats
// differ in how they describe a mapping:
//
//   - Mapping.Base is set: Offset is known, and the code segment that contains it
//     gives the address in the file, wherever the segment is linked.
//   - Mapping.Base is 0 (sp-rtrace): Start is the start of the mapped code, as
//     sp-rtrace itself writes it, or the load base, as rtrace-bpf does. The
//     length decides: it is that of a code segment, in whole pages, or reaches
//     from the lowest segment to the end of a code segment. In a file whose
//     code is in the first segment both are the same. A length that fits
//     neither, or fits two segments that disagree, gives no names.
//   - The file is linked at fixed addresses (ET_EXEC): addresses are its own.
//
// A file that is missing, or whose build ID differs from the traced file's, gives no names:
// wrong names are worse than none.
package resolve
