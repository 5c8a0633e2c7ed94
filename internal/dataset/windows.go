package dataset

import "rtrace-bpf/internal/analysis/estimate"

// windows writes the windows of a trace and what they estimate, in place of sums of blocks.
func (w *Writer) windows() {
	t := w.tables.windows
	for i, x := range w.estimates.Each() {
		row := t.add()
		row.Trace, row.Number, row.Stretch, row.Used, row.Added, row.Factor = w.source.ID, int64(i)+1, x.Stretch, x.Used, x.Added, x.Factor
		if since, ok := w.times.other(x.From); ok {
			row.Since = t.number(since)
		}
		if x.To != 0 {
			row.Open = t.number(x.To - x.From)
		}
	}
	for stack := 0; stack < w.estimates.Len(); stack++ {
		if of := w.estimates.Of(stack); of.Blocks.Value > 0 {
			w.estimate(stack, of)
		}
	}
}

// estimate writes the row of a stack.
func (w *Writer) estimate(stack int, of estimate.Allocated) {
	row := w.tables.estimates.add()
	row.Trace, row.Stack, row.AtLeast = w.source.ID, int64(stack), of.Blocks.AtLeast || of.Bytes.AtLeast
	row.Blocks, row.BlocksLow, row.BlocksHigh = of.Blocks.Value, of.Blocks.Low, of.Blocks.High
	row.Bytes, row.BytesLow, row.BytesHigh = of.Bytes.Value, of.Bytes.Low, of.Bytes.High
}
