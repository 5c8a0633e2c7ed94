package estimate

// Rate is what one window estimates for the stretch that it stands for. Times are ns since the first
// window opened.
type Rate struct {
	From, To int64   // the window
	Stretch  float64 // length of the stretch
	Blocks   float64 // allocated per second
	Bytes    float64
}

// rates holds the weighted sums of each window. The zero value is ready to use.
type rates struct {
	windows []struct{ blocks, bytes float64 }
}

// add adds an allocation after the records that were observed.
func (r *rates) add(w *Windows, size uint64) {
	if w.weight == 0 {
		return
	}
	for len(r.windows) < len(w.list) {
		r.windows = append(r.windows, struct{ blocks, bytes float64 }{})
	}
	x := &r.windows[len(w.list)-1]
	x.blocks += float64(w.weight)
	x.bytes += float64(w.weight) * float64(size)
}

// of returns the rates. The sums of rate times stretch are the estimates of all groups together.
func (r *rates) of(w *Windows) []Rate {
	out := make([]Rate, 0, len(w.list))
	for i, x := range w.Each() {
		if x.To == 0 {
			break // it is still open
		}
		rate := Rate{From: x.From - w.begun, To: x.To - w.begun, Stretch: float64(x.Stretch)}
		if i < len(r.windows) {
			times := 1e9 / rate.Stretch * x.Factor
			rate.Blocks, rate.Bytes = times*r.windows[i].blocks, times*r.windows[i].bytes
		}
		out = append(out, rate)
	}
	return out
}

// Window is a window of a trace. Times are those of the trace's clock, in ns.
type Window struct {
	From, To int64 // To is 0 if it is not known when it closed
	Stretch  int64 // length of the time that it stands for
	// Used is the processor time of the process in the window, and Added what probes took of it.
	Used, Added int64
	// A call with the weight n stands for n times Factor calls. It is 0 if that is not known,
	// because the trace ends in the window.
	Factor float64
}

// Number returns how many windows have opened.
func (w *Windows) Number() int { return len(w.list) }

// Each returns the windows.
func (w *Windows) Each() []Window {
	delay := w.delay(0)
	out := make([]Window, len(w.list))
	for i := range w.list {
		x := &w.list[i]
		out[i] = Window{From: x.from, To: x.to, Stretch: int64(x.length), Used: int64(x.spent.used), Added: int64(x.spent.added), Factor: 1}
		switch {
		case x.number > 0 && x.to == 0:
			out[i].Factor = 0
		case x.number > 0:
			out[i].Factor = x.scale * (1 + delay*x.spent.ratio(0))
		}
	}
	return out
}
