#include "textflag.h"

// func preflightLeaf()
TEXT ·preflightLeaf(SB), NOSPLIT|NOFRAME, $0-0
	NOP
	RET
