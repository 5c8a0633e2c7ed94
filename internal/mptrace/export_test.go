package mptrace

// AppendDecimal and AppendAddress format the numbers of rows.
var (
	AppendDecimal = appendDecimal
	AppendAddress = appendAddress
)

// Held returns the number of slots for blocks in b beyond the fixed ones.
func (b *Book) Held() int { return len(b.blocks.rest) }
