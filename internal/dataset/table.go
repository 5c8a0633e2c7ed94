package dataset

import (
	"fmt"
	"io"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

const (
	batchRows    = 1 << 11
	maxPointers  = 5       // in a row
	rowsPerGroup = 1 << 19 // a group is in memory, compressed, until it is written
)

// table writes the rows of a table. A goroutine of its own encodes them.
type table[T any] struct {
	now  *batch[T]
	rows int64
	full chan *batch[T]
	free chan *batch[T]
	done chan error
}

// batch is rows and the numbers that they point to.
type batch[T any] struct {
	rows    []T
	numbers []int64
}

// newTable returns a table that writes to out. finish must be called.
func newTable[T any](out io.Writer, name, trace string) *table[T] {
	t := &table[T]{full: make(chan *batch[T], 2), free: make(chan *batch[T], 4), done: make(chan error, 1)}
	for range cap(t.free) {
		t.free <- nil // made when they are needed
	}
	t.next()
	w := parquet.NewGenericWriter[T](out,
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}),
		parquet.DefaultEncodingFor(parquet.Int64, &parquet.DeltaBinaryPacked),
		parquet.MaxRowsPerRowGroup(rowsPerGroup),
		parquet.KeyValueMetadata("rtrace.schema", strconv.Itoa(Schema)),
		parquet.KeyValueMetadata("rtrace.table", name),
		parquet.KeyValueMetadata("rtrace.trace", trace),
	)
	go t.run(w)
	return t
}

// run writes batches until there are no more, also after an error, so that add never waits
// for a goroutine that has ended.
func (t *table[T]) run(w *parquet.GenericWriter[T]) {
	var failed error
	for b := range t.full {
		if failed == nil {
			_, failed = w.Write(b.rows)
		}
		t.free <- b
	}
	if failed == nil {
		failed = w.Close()
	}
	t.done <- failed
}

// add returns a new row, which is zero. It is valid until the next add.
func (t *table[T]) add() *T {
	if len(t.now.rows) == cap(t.now.rows) {
		t.full <- t.now
		t.next()
	}
	t.rows++
	t.now.rows = t.now.rows[:len(t.now.rows)+1]
	row := &t.now.rows[len(t.now.rows)-1]
	*row = *new(T)
	return row
}

// next begins another batch.
func (t *table[T]) next() {
	if t.now = <-t.free; t.now == nil {
		t.now = &batch[T]{make([]T, 0, batchRows), make([]int64, 0, maxPointers*batchRows)}
	}
	t.now.rows, t.now.numbers = t.now.rows[:0], t.now.numbers[:0]
}

// number returns a pointer to a number, for a column of the last row that may be NULL.
func (t *table[T]) number(n int64) *int64 {
	t.now.numbers = append(t.now.numbers, n)
	return &t.now.numbers[len(t.now.numbers)-1]
}

// finish writes what is left and ends the goroutine.
func (t *table[T]) finish() error {
	if len(t.now.rows) > 0 {
		t.full <- t.now
	}
	close(t.full)
	if err := <-t.done; err != nil {
		return fmt.Errorf("writing a table: %w", err)
	}
	return nil
}
