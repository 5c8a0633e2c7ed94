// Package cost measures what tracing costs a process while it is traced, and decides when
// to warn.
package cost
