package main

import (
	"fmt"

	"rtrace-bpf/internal/analysis/rss"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/report/verdict"
)

// leakObject is the output of 'rtrace leaks --json'. Times are nanoseconds since the first
// call.
type leakObject struct {
	By        string       `json:"by"`
	Resource  string       `json:"resource"`
	Blocks    uint64       `json:"blocks"`
	Bytes     uint64       `json:"bytes"`
	All       amount       `json:"all"`             // including blocks that --min-size, --min-age, --from and --context leave out
	RSS       *rss.Growth  `json:"rss,omitempty"`   // of the whole trace, if known
	Unknown   amount       `json:"unknown"`         // blocks that were live when the recording had a gap; including those left out
	Listed    string       `json:"listed"`          // which blocks blocks, bytes and groups count: live or unknown
	Replaced  amount       `json:"allocated_twice"` // live blocks that ended because another one began at their address
	Unmatched uint64       `json:"unmatched_frees"`
	Young     *youngObject `json:"young,omitempty"` // why many of the live blocks may be freed soon
	// Suppressed is what --suppressions left out; nil without it.
	Suppressed  *suppressedObject `json:"suppressed,omitempty"`
	Growing     int               `json:"growing_groups"` // groups that grow steadily, which come first
	Suspects    []leadSuspect     `json:"suspects"`       // these, with those that leak together as one
	Groups      []leakGroup       `json:"groups"`
	OtherGroups int               `json:"other_groups"` // groups that --top leaves out
	Others      amount            `json:"others"`       // sums of these
}

type leakGroup struct {
	Blocks    uint64          `json:"blocks"`
	Bytes     uint64          `json:"bytes"`
	Smallest  uint64          `json:"smallest"`
	Largest   uint64          `json:"largest"`
	FirstCall uint64          `json:"first_call"`
	FirstTime *int64          `json:"first_time,omitempty"`
	Trend     *verdict.Object `json:"trend,omitempty"` // what its call sites do over time, if known
	groupIdentity
	List []leakBlock `json:"list,omitempty"`
}

type leakFrame struct {
	Address  string `json:"address,omitempty"`
	Position string `json:"position,omitempty"` // without a function: the file and the offset in it
	Function string `json:"function,omitempty"`
	File     string `json:"file,omitempty"`
	Line     uint64 `json:"line,omitempty"`
	Module   string `json:"module,omitempty"`
}

type leakBlock struct {
	Address  string `json:"address"`
	Size     uint64 `json:"size"`
	Index    uint64 `json:"index,omitempty"`
	Call     uint64 `json:"call"`
	Time     *int64 `json:"time,omitempty"`
	PID      int32  `json:"pid,omitempty"`
	TID      int32  `json:"tid,omitempty"`
	Thread   string `json:"thread,omitempty"`
	Function string `json:"function,omitempty"`
}

func (r *leakReport) object() *leakObject {
	groups, more, rest := r.shown()
	x := &leakObject{
		By: r.options.key.String(), Resource: r.options.resource, All: r.all, RSS: r.rss, Unmatched: r.unmatched,
		Unknown: r.unknown, Listed: "live", Replaced: r.replaced, Young: youngOf(&r.young),
		Groups: make([]leakGroup, 0, len(groups)), OtherGroups: more, Others: rest,
	}
	if r.options.unknown {
		x.Listed = "unknown"
	}
	x.Blocks, x.Bytes = r.groups.Total()
	if r.trends != nil {
		x.Growing = r.trends.suspects
	}
	for _, g := range groups {
		x.Groups = append(x.Groups, r.group(g))
	}
	x.Suppressed = r.options.suppressions.object()
	x.Suspects = r.trends.objects(groups)
	return x
}

func (r *leakReport) group(g *sites.Group) leakGroup {
	out := leakGroup{
		Blocks: g.Blocks, Bytes: g.Bytes, Smallest: g.Smallest, Largest: g.Largest, FirstCall: g.FirstSeq,
		FirstTime: r.since(g.FirstTime), Trend: r.trends.object(g), groupIdentity: r.identity(g),
	}
	for i := range g.List {
		b := &g.List[i]
		out.List = append(out.List, leakBlock{
			Address: fmt.Sprintf("0x%x", b.Addr), Size: b.Size, Index: b.Index, Call: b.Seq, Time: r.since(b.Time),
			PID: b.PID, TID: b.TID, Thread: threadText(b.Thread), Function: b.Function,
		})
	}
	return out
}

// since returns a time counted from the first call, or nil if it is not known.
func (r *leakReport) since(t int64) *int64 {
	if t == 0 {
		return nil
	}
	t -= r.stats.first
	return &t
}

func threadText(thread uint64) string {
	if thread == 0 {
		return ""
	}
	return fmt.Sprintf("0x%x", thread)
}
