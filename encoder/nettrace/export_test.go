package nettrace

// SetInterval sets the number of bytes of events between sequence points.
func (e *Writer) SetInterval(bytes int) { e.interval = bytes }
