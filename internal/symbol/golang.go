package symbol

// Go reports whether the file is a program of Go's compiler, also one that has C in it or
// no symbols.
func (f *File) Go() bool {
	return f.image.named(".go.buildinfo") != nil || f.image.named(".note.go.buildid") != nil
}
