// Package cli is what both commands share in front of their user: the streams
// they talk to, exit codes and the errors that carry them, the layout of help
// pages and the version line.
//
// It knows no flag library, no signals and no standard streams; those are
// handed in by the main packages.
package cli
