package topview

import (
	"encoding/json"
	"io"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/printable"
)

// object is a snapshot as one line of JSON. docs/top.md describes it.
type object struct {
	Seconds   float64         `json:"seconds"` // since tracing began
	Final     bool            `json:"final"`   // no line follows
	Processes []processObject `json:"processes"`
	By        By              `json:"by"`
	Sort      Order           `json:"sort"`
	Resources []resourceTotal `json:"resources"`
	Lost      uint64          `json:"lost"`
	Pauses    uint64          `json:"pauses"`
	Notes     []string        `json:"notes"` // what makes the figures uncertain
	// Suspects is null without verdicts, and empty if nothing grows.
	Suspects      []suspectObject `json:"suspects"`
	OtherSuspects int             `json:"other_suspects"` // that are left out
	Rows          []rowObject     `json:"rows"`
	OtherRows     int             `json:"other_rows"` // rows that are left out
	Others        figuresObject   `json:"others"`     // sums of these
}

type processObject struct {
	PID    int     `json:"pid"`
	Name   string  `json:"name"`
	RSS    uint64  `json:"rss"`          // 0 if it is not known
	Share  float64 `json:"share"`        // of its processor time that goes into tracing
	Factor float64 `json:"factor"`       // how many times slower it is; 0 if that is not known
	Whole  float64 `json:"whole_factor"` // the same since tracing began
	Execs  int     `json:"execs"`
	Ended  bool    `json:"ended"`
}

type resourceTotal struct {
	Type        string     `json:"type"`
	Allocations uint64     `json:"allocations"`
	Frees       uint64     `json:"frees"`
	Reallocs    uint64     `json:"reallocs"`
	Live        amountJSON `json:"live"`
	Unknown     amountJSON `json:"unknown"`
	Allocated   amountJSON `json:"allocated"`
	Freed       amountJSON `json:"freed"`
}

type amountJSON struct {
	Blocks uint64 `json:"blocks"`
	Bytes  uint64 `json:"bytes"`
}

type figuresObject struct {
	Live      amountJSON `json:"live"`
	Unknown   amountJSON `json:"unknown"`
	Allocated amountJSON `json:"allocated"`
	Freed     amountJSON `json:"freed"`
	Growth    float64    `json:"growth"`          // change of live bytes per second
	Rate      float64    `json:"allocated_bytes"` // per second
	Calls     float64    `json:"allocations"`     // per second
}

type rowObject struct {
	Text string `json:"text"`
	figuresObject
	placeObject
}

type placeObject struct {
	Function string   `json:"function,omitempty"`
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"`
	Library  string   `json:"library,omitempty"`
	Stack    []string `json:"stack,omitempty"`
}

// writeJSON writes the snapshot with the first rows as one line of JSON.
func (l *listing) writeJSON(w io.Writer, rows int) error {
	s := l.snapshot
	x := object{
		Seconds: s.Elapsed.Seconds(), Final: l.last, By: l.query.by, Sort: l.query.order, Notes: append([]string{}, s.Notes()...),
		Processes: []processObject{}, Resources: []resourceTotal{}, Rows: []rowObject{},
	}
	for _, p := range s.Processes {
		x.Processes = append(x.Processes, processObject{p.PID, printable.Name(p.Name), p.RSS, p.Share, p.Factor, p.Whole, p.Execs, p.Ended})
		x.Lost += p.Lost
		x.Pauses += p.Pauses
	}
	for i := range s.Resources {
		r := &s.Resources[i]
		x.Resources = append(x.Resources, resourceTotal{
			r.Type, r.Calls.Allocations, r.Calls.Frees, r.Calls.Reallocs,
			amountJSON(r.Total.Live), amountJSON(r.Total.Unknown), amountJSON(r.Total.Allocated), amountJSON(r.Freed),
		})
	}
	x.Suspects, x.OtherSuspects = l.suspects.objects(rows)
	shown := l.rows[:min(rows, len(l.rows))]
	for i := range shown {
		r := &shown[i]
		x.Rows = append(x.Rows, rowObject{
			r.label(), figures(r.Live, r.Unknown, r.Allocated, r.Freed, r.Growth, r.Rate, r.Calls),
			placed(r.Place),
		})
	}
	t := total(l.rows[len(shown):])
	x.OtherRows = len(l.rows) - len(shown)
	x.Others = figures(t.Live, t.Unknown, t.Allocated, t.Freed, t.Growth, t.Rate, t.Calls)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(x)
}

func placed(p *Place) placeObject {
	return placeObject{p.Function, p.File, p.Line, p.Library, p.Stack}
}

func figures(alive, unknown, allocated, freed live.Amount, growth, rate, calls float64) figuresObject {
	return figuresObject{amountJSON(alive), amountJSON(unknown), amountJSON(allocated), amountJSON(freed), growth, rate, calls}
}
