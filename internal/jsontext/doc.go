// Package jsontext reads and appends lines of JSON without reflection and
// without an allocation per line, for the jsonl format and the side file.
//
// Strings are preserved exactly, even if they are not UTF-8: a byte b ≥ 0x80
// that is not part of valid UTF-8 is written as the escape of U+DC00+b, a lone
// low surrogate, which valid text cannot contain.
package jsontext

const invalidByte = 0xdc00
