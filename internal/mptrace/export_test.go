package mptrace

// AppendDecimal and AppendAddress are what rows are made with.
var (
	AppendDecimal = appendDecimal
	AppendAddress = appendAddress
)

// Held returns how many places for blocks outside the fixed ones b has.
func (b *Book) Held() int { return len(b.blocks.rest) }
