package lines

import "debug/dwarf"

// form is how an attribute is stored (DW_FORM_*).
type form uint16

const (
	formAddr          form = 0x01
	formBlock2        form = 0x03
	formBlock4        form = 0x04
	formData2         form = 0x05
	formData4         form = 0x06
	formData8         form = 0x07
	formString        form = 0x08
	formBlock         form = 0x09
	formBlock1        form = 0x0a
	formData1         form = 0x0b
	formFlag          form = 0x0c
	formSdata         form = 0x0d
	formStrp          form = 0x0e
	formUdata         form = 0x0f
	formRefAddr       form = 0x10
	formRef1          form = 0x11
	formRef2          form = 0x12
	formRef4          form = 0x13
	formRef8          form = 0x14
	formRefUdata      form = 0x15
	formIndirect      form = 0x16
	formSecOffset     form = 0x17
	formExprloc       form = 0x18
	formFlagPresent   form = 0x19
	formStrx          form = 0x1a
	formAddrx         form = 0x1b
	formRefSup4       form = 0x1c
	formStrpSup       form = 0x1d
	formData16        form = 0x1e
	formLineStrp      form = 0x1f
	formRefSig8       form = 0x20
	formImplicitConst form = 0x21
	formLoclistx      form = 0x22
	formRnglistx      form = 0x23
	formRefSup8       form = 0x24
	formStrx1         form = 0x25
	formStrx2         form = 0x26
	formStrx3         form = 0x27
	formStrx4         form = 0x28
	formAddrx1        form = 0x29
	formAddrx2        form = 0x2a
	formAddrx3        form = 0x2b
	formAddrx4        form = 0x2c
	formGNUAddrIndex  form = 0x1f01
	formGNUStrIndex   form = 0x1f02
	formGNURefAlt     form = 0x1f20
	formGNUStrpAlt    form = 0x1f21
)

// Attributes that package dwarf has no names for.
const (
	attrMIPSLinkageName dwarf.Attr = 0x2007
	attrGNUDwoName      dwarf.Attr = 0x2130
	attrGNUDwoID        dwarf.Attr = 0x2131
	attrGNURangesBase   dwarf.Attr = 0x2132
	attrGNUAddrBase     dwarf.Attr = 0x2133
)

// width is the width of the fields of a unit.
type width struct {
	version uint16
	wide    bool  // offsets have 8 bytes instead of 4
	addr    uint8 // bytes of an address, 4 or 8
}

func (w width) offset() int {
	if w.wide {
		return 8
	}
	return 4
}

// varies is the size of a form whose values differ in length.
const varies = -1

// size returns how many bytes a value of the form takes, or varies. ok is false for an
// unknown form.
func (f form) size(w width) (n int, ok bool) {
	switch f {
	case formFlagPresent, formImplicitConst:
		return 0, true
	case formData1, formFlag, formRef1, formStrx1, formAddrx1:
		return 1, true
	case formData2, formRef2, formStrx2, formAddrx2:
		return 2, true
	case formStrx3, formAddrx3:
		return 3, true
	case formData4, formRef4, formRefSup4, formStrx4, formAddrx4:
		return 4, true
	case formData8, formRef8, formRefSig8, formRefSup8:
		return 8, true
	case formData16:
		return 16, true
	case formAddr:
		return int(w.addr), true
	case formRefAddr:
		if w.version == 2 {
			return int(w.addr), true
		}
		return w.offset(), true
	case formStrp, formLineStrp, formSecOffset, formStrpSup, formGNURefAlt, formGNUStrpAlt:
		return w.offset(), true
	case formBlock1, formBlock2, formBlock4, formBlock, formExprloc, formString, formIndirect, formSdata, formUdata,
		formRefUdata, formStrx, formAddrx, formLoclistx, formRnglistx, formGNUAddrIndex, formGNUStrIndex:
		return varies, true
	}
	return 0, false
}

// kind is what the number in a value means.
type kind uint8

const (
	kindOther        kind = iota // not used
	kindConst                    // a number; in old versions also an offset
	kindAddr                     // an address
	kindAddrIndex                // an index in .debug_addr
	kindOffset                   // an offset in a section that the attribute implies
	kindListIndex                // an index in .debug_rnglists
	kindRef                      // an entry, as an offset in .debug_info
	kindText                     // bytes
	kindStr                      // an offset in .debug_str
	kindLineStr                  // an offset in .debug_line_str
	kindStrIndex                 // an index in .debug_str_offsets
	kindRefAlternate             // an entry, as an offset in .debug_info of the alternate file
	kindStrAlternate             // an offset in .debug_str of the alternate file
)

// value is the value of an attribute. What its number refers to is read only when it is
// needed.
type value struct {
	kind kind
	n    uint64
	text []byte
}

// pass skips a value. An unknown form makes the cursor fail.
func (c *cursor) pass(f form, w width) {
	for range maxIndirect {
		n, ok := f.size(w)
		switch {
		case !ok:
			c.fail()
			return
		case n != varies:
			c.skip(uint64(n))
			return
		}
		switch f {
		case formBlock1:
			c.skip(c.uint(1))
		case formBlock2:
			c.skip(c.uint(2))
		case formBlock4:
			c.skip(c.uint(4))
		case formBlock, formExprloc:
			c.skip(c.uleb())
		case formString:
			c.text()
		case formIndirect:
			f = form(min(c.uleb(), maxForm))
			continue
		case formSdata:
			c.sleb()
		default:
			c.uleb()
		}
		return
	}
	c.fail()
}

const (
	maxForm     = 0xffff
	maxIndirect = 4 // levels of DW_FORM_indirect, where the form precedes the value
)

// take reads a value of a unit that begins at base.
func (c *cursor) take(a attribute, w width, base uint64) value {
	f := a.form
	for range maxIndirect {
		if f != formIndirect {
			break
		}
		f = form(min(c.uleb(), maxForm))
	}
	if n, _ := f.size(w); n >= 0 && n <= 8 && n != 0 {
		switch f {
		case formAddr:
			return value{kind: kindAddr, n: c.uint(n)}
		case formData1, formData2, formData4, formData8:
			return value{kind: kindConst, n: c.uint(n)}
		case formRef1, formRef2, formRef4, formRef8:
			return value{kind: kindRef, n: base + c.uint(n)}
		case formRefAddr:
			return value{kind: kindRef, n: c.uint(n)}
		case formStrp:
			return value{kind: kindStr, n: c.uint(n)}
		case formLineStrp:
			return value{kind: kindLineStr, n: c.uint(n)}
		case formSecOffset:
			return value{kind: kindOffset, n: c.uint(n)}
		case formRefSup4, formRefSup8, formGNURefAlt:
			return value{kind: kindRefAlternate, n: c.uint(n)}
		case formStrpSup, formGNUStrpAlt:
			return value{kind: kindStrAlternate, n: c.uint(n)}
		case formStrx1, formStrx2, formStrx3, formStrx4:
			return value{kind: kindStrIndex, n: c.uint(n)}
		case formAddrx1, formAddrx2, formAddrx3, formAddrx4:
			return value{kind: kindAddrIndex, n: c.uint(n)}
		}
	}
	switch f {
	case formUdata:
		return value{kind: kindConst, n: c.uleb()}
	case formSdata:
		return value{kind: kindConst, n: uint64(c.sleb())}
	case formImplicitConst:
		return value{kind: kindConst, n: uint64(a.implicit)}
	case formRefUdata:
		return value{kind: kindRef, n: base + c.uleb()}
	case formString:
		return value{kind: kindText, text: c.text()}
	case formStrx, formGNUStrIndex:
		return value{kind: kindStrIndex, n: c.uleb()}
	case formAddrx, formGNUAddrIndex:
		return value{kind: kindAddrIndex, n: c.uleb()}
	case formRnglistx:
		return value{kind: kindListIndex, n: c.uleb()}
	}
	c.pass(f, w)
	return value{}
}
