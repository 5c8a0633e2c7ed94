package tracer

import "strconv"

// registerName names a register by the number that instructions give it.
func registerName(n uint8) string { return "x" + strconv.Itoa(int(n)) }
