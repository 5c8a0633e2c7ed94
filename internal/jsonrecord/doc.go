// Package jsonrecord reads and appends single records as JSON objects: the exact text
// form of trace.Record that docs/formats/jsonl.md describes. A jsonl file consists of
// lines with one such object each; side files and spools hold them among other things.
package jsonrecord
