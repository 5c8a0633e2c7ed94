// Package collector polls the rings of all CPUs and the kernel's records about the
// process, brings them into one order, and passes them on in batches.
//
// Of its types, rings has the rings of the programs, outlet the order and the batches,
// processRecords the kernel's records, losses the counters, and pacer the waits between
// two polls. A [Collector] runs them.
package collector
