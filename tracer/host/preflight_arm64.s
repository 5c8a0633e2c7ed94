#include "textflag.h"

// func preflightLeaf()
TEXT ·preflightLeaf(SB), NOSPLIT|NOFRAME, $0-0
	NOOP
	RET

// func preflightAddress() uintptr
TEXT ·preflightAddress(SB), NOSPLIT|NOFRAME, $0-8
	MOVD $·preflightLeaf(SB), R0
	MOVD R0, ret+0(FP)
	RET
