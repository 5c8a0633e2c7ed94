package tracer

// callSize is the size of a direct call instruction in bytes.
const callSize = 5

// registerName names a register by the number that instructions give it.
func registerName(n uint8) string {
	names := [...]string{
		"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
		"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
	}
	if int(n) < len(names) {
		return names[n]
	}
	return "none"
}
