// Package resident reads which memory of a process is resident: per mapping from
// /proc/PID/smaps, in all from /proc/PID/smaps_rollup, and per page from /proc/PID/pagemap. The
// process runs on.
//
// The formats are those of the kernel's Documentation/filesystems/proc.rst and
// Documentation/admin-guide/mm/pagemap.rst.
package resident
