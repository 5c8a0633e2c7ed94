package symbol

// Go reports whether Go's compiler made the program. It also recognises programs that
// contain C and programs without symbols.
func (f *File) Go() bool {
	return f.image.named(".go.buildinfo") != nil || f.image.named(".note.go.buildid") != nil
}
