// Package jsonrecord reads and appends single records as JSON objects: the exact text
// form of trace.Record that docs/formats/jsonl.md describes. The jsonl format is made of
// lines of it; side files and spools hold such objects among other things.
package jsonrecord
