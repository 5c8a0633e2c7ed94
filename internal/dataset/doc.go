// Package dataset writes traces as tables in the format Parquet, for engines such as
// DuckDB, Spark and ClickHouse. docs/formats/parquet.md describes the tables.
//
// A dataset is a directory with a folder for each table. Below it are folders for date,
// host and service, named as Hive names them, and in these a file for each trace. Traces
// are added one by one. One that the dataset has already is replaced.
//
// Memory grows with the blocks that are live at a time and the distinct stacks, not with
// the number of calls.
package dataset

// Schema is the version of the tables. It changes when a column changes its meaning or
// goes; new columns do not change it.
const Schema = 1

// Tables lists the tables. The last one makes a trace complete: its row appears after all
// others.
func Tables() []string {
	return []string{"calls", "blocks", "sites", "stacks", "frames", "resources", "mappings", "losses", "records", "windows", "estimates", "traces"}
}
