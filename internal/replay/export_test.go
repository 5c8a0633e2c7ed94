package replay

// For the tests: FindMalloc with the folders of libraries given, and the reading
// of what the C program prints.
var (
	FindMallocIn = findMalloc
	ParseRun     = parseRun
)

// Files are the C program and the program's file.
func (r *Runner) Files() (binary, program string) { return r.binary, r.program }
