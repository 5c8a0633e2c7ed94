// Package cli has what both commands share at their command line: streams, messages as
// text or JSON, exit codes and the errors that carry them, the layout of help pages, and the
// version line.
//
// It uses no flag library, no signals and no standard streams; the main packages pass those
// in.
package cli
