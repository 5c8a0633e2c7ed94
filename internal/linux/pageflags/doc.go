// Package pageflags writes what sp-rtrace's pagemap module attaches to a trace: a copy of
// /proc/PID/maps, and for each page of the process what the kernel says of it. Package
// internal/analysis/pagemap reads them.
package pageflags
