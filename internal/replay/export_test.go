package replay

// FindMalloc with given library folders, and the parser of the C program's
// output, for tests.
var (
	FindMallocIn = findMalloc
	ParseRun     = parseRun
)

// Files returns the paths of the C program and the program's file.
func (r *Runner) Files() (binary, program string) { return r.binary, r.program }
