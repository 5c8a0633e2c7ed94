// Package residence follows which pages of a process are resident, and which page fault made each
// of them so.
//
// Page faults come from the programs in the kernel one by one. Which pages are resident is looked
// up from time to time: a Ledger compares each look with the one before. Pages that are there now
// and were not before have come by the faults in between; pages that are not there any more have
// gone, for whatever reason. Faults alone would not do: one may bring many pages, or none.
package residence
