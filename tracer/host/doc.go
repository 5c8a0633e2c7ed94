// Package host finds out what this machine offers a tracer and what this process may do:
// the kernel's features, capabilities, limits, and what a probe costs here.
//
// Features are tested by trying them, not by the kernel's version. Some tests put a probe
// into this process or into a child of it. The children run the same program, so a program
// that traces calls [RunAsChild] at the start of main.
package host
