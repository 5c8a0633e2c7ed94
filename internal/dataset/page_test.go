package dataset

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the generated part of the format page")

const (
	page      = "../../docs/formats/parquet.md"
	pageBegin = "<!-- generated: tables -->\n"
	pageEnd   = "<!-- end -->\n"
)

// rowTypes are the rows of the tables.
var rowTypes = map[string]reflect.Type{
	"calls": reflect.TypeFor[Call](), "blocks": reflect.TypeFor[Block](), "sites": reflect.TypeFor[Site](),
	"stacks": reflect.TypeFor[Stack](), "frames": reflect.TypeFor[Frame](), "resources": reflect.TypeFor[Resource](),
	"mappings": reflect.TypeFor[Mapping](), "losses": reflect.TypeFor[Loss](), "records": reflect.TypeFor[Entry](),
	"windows": reflect.TypeFor[Window](), "estimates": reflect.TypeFor[Estimate](), "traces": reflect.TypeFor[Trace](),
}

// columnType returns the type of a column as SQL names it.
func columnType(f reflect.StructField) string {
	tag := f.Tag.Get("parquet")
	of := f.Type
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	names := map[reflect.Kind]string{
		reflect.String: "VARCHAR", reflect.Int64: "BIGINT", reflect.Int32: "INTEGER", reflect.Bool: "BOOLEAN", reflect.Float64: "DOUBLE",
	}
	name := names[of.Kind()]
	switch {
	case strings.Contains(tag, "timestamp"):
		name = "TIMESTAMP"
	}
	if !strings.Contains(tag, "optional") {
		name += " NOT NULL"
	}
	return name
}

// described returns the tables as they appear on the page.
func described(t *testing.T) string {
	var b strings.Builder
	for i, table := range Tables() {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "### %s\n\n| column | type | unit | |\n|---|---|---|---|\n", table)
		for f := range rowTypes[table].Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
			if f.Tag.Get("key") != "" {
				name = "**" + name + "**"
			}
			doc := f.Tag.Get("doc")
			if doc == "" || name == "" {
				t.Errorf("%s: %s has no description", table, f.Name)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, columnType(f), f.Tag.Get("unit"), doc)
		}
	}
	return b.String()
}

// TestFormatPage checks that the page lists the tables as they are.
func TestFormatPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), pageBegin)
	old, after, end := strings.Cut(rest, pageEnd)
	if !ok || !end {
		t.Fatalf("%s has no place for the tables", page)
	}
	now := described(t)
	if old == now {
		return
	}
	if !*update {
		t.Fatalf("%s is stale: make docs", page)
	}
	if err := os.WriteFile(page, []byte(before+pageBegin+now+pageEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
