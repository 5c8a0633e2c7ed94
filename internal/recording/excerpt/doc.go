// Package excerpt writes a part of a recording as traces, while all of it goes somewhere else,
// such as to a live view. Each trace is as complete as one whose recording began and ended at the
// same times.
package excerpt
