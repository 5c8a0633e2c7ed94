package sites

import (
	"strconv"
	"strings"

	"rtrace-bpf/trace"
)

// Mentions reports whether a text occurs in the description of a call: in a
// frame as "0x1000 main() at demo.c:12", in the caller, or in an argument as
// "path = /etc/hosts".
func Mentions(c *trace.Call, text string) bool {
	s := &c.Stack
	named := len(s.Names) == len(s.Frames)
	var line []byte
	for i, addr := range s.Frames {
		line = strconv.AppendUint(append(line[:0], "0x"...), addr, 16)
		if named && s.Names[i] != "" {
			line = append(append(line, ' '), s.Names[i]...)
		}
		if strings.Contains(string(line), text) {
			return true
		}
	}
	for i := range c.Args {
		if strings.Contains(c.Args[i].Name+" = "+c.Args[i].Value, text) {
			return true
		}
	}
	if c.Caller == (trace.Caller{}) {
		return false
	}
	return strings.Contains(Place{Function: c.Caller.Function, File: c.Caller.File, Line: c.Caller.Line}.String(), text)
}
