// Package pageflags writes the files that sp-rtrace's pagemap module attaches to a trace: a
// copy of /proc/PID/maps, and the kernel's flags for each page of the process. Package
// internal/analysis/pagemap reads them.
package pageflags
