package tracer

import "strconv"

// callSize is the size of a direct call instruction in bytes.
const callSize = 4

// registerName names a register by the number that instructions give it.
func registerName(n uint8) string { return "x" + strconv.Itoa(int(n)) }
