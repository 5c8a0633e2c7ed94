// Package status prints what happens during a recording: messages, and on a terminal a
// line of progress that the next message or line replaces.
package status
