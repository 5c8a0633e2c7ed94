// Package explain is the answer to the question where the resident memory of a process is: a
// document with rows that add up to the resident memory, the state of malloc's arenas, and
// verdicts that quote the rows they rest on. It is printed as text and as JSON.
//
// The package reads nothing. Package internal/survey makes the documents.
package explain
