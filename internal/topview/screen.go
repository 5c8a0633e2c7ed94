package topview

// screen is the state of the terminal interface.
type screen struct {
	cursor  int    // row that is selected
	top     int    // first row that is shown
	opened  bool   // the selected row is shown in detail
	scroll  int    // first line of the detail that is shown
	help    bool   // the keys are shown
	frozen  bool   // snapshots are ignored
	last    bool   // the last snapshot has been taken
	typing  bool   // the filter is being typed
	message string // about the last key; empty for none
}

// clamp keeps the cursor in the rows.
func (s *screen) clamp(rows int) {
	s.cursor = max(0, min(s.cursor, rows-1))
}
