package digestview

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/usage"
)

// Limits of a page, which keep it below 5 MB. Smaller items are summed up as
// "(other)".
const (
	maxNodes   = 60_000    // of all trees
	maxStacks  = 10_000    // of all resources
	maxText    = 1_500_000 // bytes of names as JSON
	maxName    = 400       // bytes of a name
	maxRows    = 400       // rows of a table of functions, modules, threads …
	allRows    = 8000      // rows of all tables, roughly
	leastRows  = 10        // rows that every table may have
	maxMarks   = 200
	maxSpans   = 2000                 // times that contexts were entered
	maxCurves  = 16                   // resources that are shown
	bothCurves = 4                    // resources with curves over both axes
	tableText  = maxText / 5          // reserved for the names of tables
	frameText  = 3*6*(maxName+8) + 32 // largest size of a frame's texts, if every byte is escaped
	usesOf     = 10                   // numbers in a Use
	otherFrame = -1
)

// page is the data for the script of a page. Times are in nanoseconds since the
// first call.
type page struct {
	Events    uint64       `json:"events"`
	Duration  int64        `json:"duration"` // 0 without times
	Step      int64        `json:"step"`     // resolution of the clock
	From      int64        `json:"from"`     // the beginning of the recording: at most 0
	To        int64        `json:"to"`       // its end
	Wall      int64        `json:"wall"`     // the beginning in milliseconds since 1970; 0 if unknown
	Spans     []span       `json:"spans"`
	RSS       [][]int64    `json:"rss"`    // times and bytes
	System    [][]int64    `json:"system"` // times and bytes
	Open      int          `json:"open"`   // the resource to show first
	Texts     []string     `json:"texts"`
	Frames    frameData    `json:"frames"`
	Nodes     nodeData     `json:"nodes"`
	Intervals intervalData `json:"intervals"`
	Resources []resource   `json:"resources"`
	Marks     []mark       `json:"marks"`
}

// frameData holds frames as columns. Texts are numbers of page.Texts; 0 is
// none.
type frameData struct {
	Function []int    `json:"function"`
	File     []int    `json:"file"`
	Line     []uint64 `json:"line"`
	Module   []int    `json:"module"`
	Address  []int    `json:"address"`
	Inlined  []int    `json:"inlined"` // numbers of the inlined frames
}

// nodeData holds the nodes of the tree of stacks as columns. Node 0 is the
// root; its children are the outermost frames. Frame -1 stands for others.
type nodeData struct {
	Parent []int `json:"parent"`
	Frame  []int `json:"frame"`
}

// uses holds the numbers of a Use: the blocks and bytes that are live, live at
// the peak, allocated, temporary and unknown.
type uses [usesOf]uint64

func usesOfUse(u *digest.Use) uses {
	return uses{
		u.Live.Blocks, u.Live.Bytes, u.AtPeak.Blocks, u.AtPeak.Bytes,
		u.Allocated.Blocks, u.Allocated.Bytes, u.Temporary.Blocks, u.Temporary.Bytes,
		u.Unknown.Blocks, u.Unknown.Bytes,
	}
}

func (u *uses) add(v *uses) {
	for i := range u {
		u[i] += v[i]
	}
}

// share returns the largest share that any number of u has in the whole.
func (u *uses) share(whole *uses) float64 {
	most := 0.0
	for i := range u {
		if whole[i] > 0 {
			most = max(most, float64(u[i])/float64(whole[i]))
		}
	}
	return most
}

type resource struct {
	Type      string `json:"type"`
	Desc      string `json:"desc"`
	Bytes     bool   `json:"bytes"`    // sizes are bytes
	Sized     bool   `json:"sized"`    // sizes are meaningful
	HasFrees  bool   `json:"hasFrees"` // or reallocs
	HasStacks bool   `json:"hasStacks"`
	usage.Calls
	Total      uses       `json:"total"`
	Freed      [2]uint64  `json:"freed"`
	PeakEvent  uint64     `json:"peakEvent"`
	PeakTime   int64      `json:"peakTime"`
	PeakBlocks uint64     `json:"peakBlocks"`
	ByEvent    *curve     `json:"byEvent"`
	ByTime     *curve     `json:"byTime,omitempty"`
	Sizes      [][]uint64 `json:"sizes"`
	LifeEvents [][]uint64 `json:"lifeEvents"`
	LifeTimes  [][]uint64 `json:"lifeTimes"`
	Stacks     stacks     `json:"stacks"`
	Functions  group      `json:"functions"`
	Modules    group      `json:"modules"`
	Threads    group      `json:"threads"`
	Processes  group      `json:"processes"`
	APIs       [][]any    `json:"apis"`  // name by its number, operation, calls, bytes
	Cells      string     `json:"cells"` // see encodeCells, in base64
}

// stacks holds the stacks of a resource as columns. The stacks from First on
// are sums of Left smaller ones.
type stacks struct {
	Node  []int    `json:"node"`
	Uses  []uses   `json:"uses"`
	Event []uint64 `json:"event"` // event of the oldest live block
	Time  []int64  `json:"time"`
	First int      `json:"first"`
	Left  int      `json:"left"`
}

// group is a table. A row is a name, a module or remark (both numbers of
// page.Texts), and the uses; rows of functions and modules also have the uses
// with callees, and those of threads the row of their process or -1.
type group struct {
	Rows [][]any `json:"rows"`
	Left int     `json:"left"` // rows that are summed up in Rest
	Rest uses    `json:"rest"`
}

// curve holds the points of a digest.Curve as columns.
type curve struct {
	Width  uint64   `json:"width"`
	Least  []uint64 `json:"least"`
	Most   []uint64 `json:"most"`
	Last   []uint64 `json:"last"`
	LeastN []uint64 `json:"leastBlocks"`
	MostN  []uint64 `json:"mostBlocks"`
	LastN  []uint64 `json:"lastBlocks"`
	New    []uint64 `json:"allocated"` // bytes
	NewN   []uint64 `json:"allocatedBlocks"`
	Gone   []uint64 `json:"freed"`
	GoneN  []uint64 `json:"freedBlocks"`
}

type mark struct {
	Name    string      `json:"name"`
	Event   uint64      `json:"event"`
	Time    int64       `json:"time"`
	Calls   uint64      `json:"calls"`
	ByEvent [][2]uint64 `json:"byEvent"`
	ByTime  [][2]uint64 `json:"byTime"`
}

func newCurve(c *digest.Curve) *curve {
	out := &curve{Width: c.Width}
	for i := range c.Points {
		p := &c.Points[i]
		out.Least, out.Most, out.Last = append(out.Least, p.Bytes.Min), append(out.Most, p.Bytes.Max), append(out.Last, p.Bytes.Last)
		out.LeastN, out.MostN, out.LastN = append(out.LeastN, p.Blocks.Min), append(out.MostN, p.Blocks.Max), append(out.LastN, p.Blocks.Last)
		out.New, out.NewN = append(out.New, p.Allocated.Bytes), append(out.NewN, p.Allocated.Blocks)
		out.Gone, out.GoneN = append(out.Gone, p.Freed.Bytes), append(out.GoneN, p.Freed.Blocks)
	}
	return out
}

func binData(bins []digest.Bin) [][]uint64 {
	out := make([][]uint64, 0, len(bins))
	for _, b := range bins {
		out = append(out, []uint64{b.From, b.To, b.Blocks, b.Bytes, b.Live.Blocks, b.Live.Bytes})
	}
	return out
}

// builder builds the data of a page.
type builder struct {
	page
	result   *digest.Result
	texts    map[string]int
	left     int            // bytes left for names
	frames   []int          // 1 + the number in the page, by the number in the result
	children map[uint64]int // nodes by parent and frame
	stacks   int            // number left
	rows     int            // rows left for tables
	rowsOf   []rowsOf       // by resource
}

// rowsOf holds the rows of a resource in the page for its places and threads.
type rowsOf struct{ places, threads []int }

func build(r *digest.Result) *page {
	b := &builder{
		result: r, texts: map[string]int{"": 0}, left: maxText, frames: make([]int, len(r.Frames)),
		children: make(map[uint64]int), stacks: maxStacks, rows: allRows,
	}
	b.Events, b.Duration, b.Texts = r.Calls, r.Duration, []string{""}
	b.recording(r)
	if b.Step = 1; r.Coarse {
		b.Step = 1e6
	}
	b.Nodes = nodeData{Parent: []int{0}, Frame: []int{otherFrame}}
	b.Frames = frameData{[]int{}, []int{}, []uint64{}, []int{}, []int{}, []int{}}
	b.Resources, b.Marks = []resource{}, []mark{}
	resources := r.Resources[:min(maxCurves, len(r.Resources))]
	for i, of := range resources {
		b.resource(of, len(resources)-i)
	}
	b.cells(resources)
	b.Open = largest(resources)
	spans := maxSpans
	for _, m := range r.Marks[:min(maxMarks, len(r.Marks))] {
		cut := func(s [][2]uint64) [][2]uint64 {
			s = s[:min(len(s), spans)]
			spans -= len(s)
			return append([][2]uint64{}, s...)
		}
		b.Marks = append(b.Marks, mark{shorten(sites.Printable(m.Name)), m.Event, m.Time, m.Calls, cut(m.ByEvent), cut(m.ByTime)})
	}
	return &b.page
}

// shorten truncates a name that is too long.
func shorten(s string) string {
	if len(s) <= maxName {
		return s
	}
	n := maxName
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// text returns the number of a text, or 0 if there is no room for it.
func (b *builder) text(s string) int {
	s = shorten(s)
	if n, ok := b.texts[s]; ok {
		return n
	}
	quoted, err := json.Marshal(s)
	if err != nil || len(quoted)+1 > b.left {
		return 0
	}
	b.left -= len(quoted) + 1
	b.texts[s] = len(b.Texts)
	b.Texts = append(b.Texts, s)
	return len(b.Texts) - 1
}

// frame returns the number of a frame in the page, and false if there is no
// room for it.
func (b *builder) frame(n uint32) (int, bool) {
	if b.frames[n] > 0 {
		return b.frames[n] - 1, true
	}
	if b.left < tableText+frameText {
		return 0, false
	}
	f := &b.result.Frames[n]
	b.Frames.Function = append(b.Frames.Function, b.text(f.Function))
	b.Frames.File = append(b.Frames.File, b.text(f.File))
	b.Frames.Line = append(b.Frames.Line, f.Line)
	b.Frames.Module = append(b.Frames.Module, b.text(f.Module))
	address := f.Position
	if address == "" && f.Addr != 0 {
		address = "0x" + strconv.FormatUint(f.Addr, 16)
	}
	b.Frames.Address = append(b.Frames.Address, b.text(address))
	if f.Inlined {
		b.Frames.Inlined = append(b.Frames.Inlined, len(b.Frames.Function)-1)
	}
	b.frames[n] = len(b.Frames.Function)
	return b.frames[n] - 1, true
}

// childKey identifies the child of a node by its frame.
func childKey(parent, frame int) uint64 { return uint64(parent)<<32 | uint64(uint32(frame)) }

// child returns the child of a node with a frame, creating it if needed; 0 if
// there is no room.
func (b *builder) child(parent, frame int) int {
	key := childKey(parent, frame)
	if n, ok := b.children[key]; ok {
		return n
	}
	// Nodes of others do not count: there is at most one below each node.
	if len(b.Nodes.Parent) >= maxNodes && frame != otherFrame {
		return 0
	}
	n := len(b.Nodes.Parent)
	b.Nodes.Parent, b.Nodes.Frame = append(b.Nodes.Parent, parent), append(b.Nodes.Frame, frame)
	b.children[key] = n
	return n
}

// path returns the node of a stack, creating nodes if needed. If there is no
// room for all frames, it returns the last node that fits and false.
func (b *builder) path(frames []uint32, limit int) (node int, whole bool) {
	for _, n := range slices.Backward(frames) {
		f, ok := b.frame(n)
		if !ok {
			return node, false
		}
		next, known := b.children[childKey(node, f)]
		if !known && len(b.Nodes.Parent) < limit {
			next = b.child(node, f)
		}
		if next == 0 {
			return node, false
		}
		node = next
	}
	return node, true
}

// known is like path, but creates no nodes.
func (b *builder) known(frames []uint32) (node int) {
	for _, n := range slices.Backward(frames) {
		f := b.frames[n]
		next, ok := b.children[childKey(node, f-1)]
		if f == 0 || !ok {
			return node
		}
		node = next
	}
	return node
}

// places returns the stacks of a resource, and the row of each of its places. remaining counts the
// resources still to come, including this one.
func (b *builder) places(of *digest.Resource, total *uses, remaining int) (stacks, []int) {
	s := stacks{Node: []int{}, Uses: []uses{}, Event: []uint64{}, Time: []int64{}}
	all := make([]uses, len(of.Places))
	order := make([]int, len(of.Places))
	score := make([]float64, len(of.Places))
	for i := range of.Places {
		all[i], order[i] = usesOfUse(&of.Places[i].Use), i
		score[i] = all[i].share(total)
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(score[y], score[x]) })
	// This resource gets half of the remaining room, or its equal share if that
	// is more.
	part := func(n int) int { return max(n/2, n/remaining) }
	if remaining == 1 {
		part = func(n int) int { return n }
	}
	limit := len(b.Nodes.Parent) + part(maxNodes-min(maxNodes, len(b.Nodes.Parent)))
	room := part(b.stacks)
	add := func(node int, u *uses, event uint64, time int64) {
		s.Node, s.Uses = append(s.Node, node), append(s.Uses, *u)
		s.Event, s.Time = append(s.Event, event), append(s.Time, time)
	}
	others := make(map[int]*uses)
	rows, nodeOf := make([]int, len(of.Places)), make(map[int]int) // nodeOf has the places without a row
	var nodes []int
	for _, i := range order {
		p := &of.Places[i]
		node, whole := 0, false
		if len(s.Node) < room {
			node, whole = b.path(p.Frames, limit)
		} else {
			node = b.known(p.Frames)
		}
		if whole {
			rows[i] = len(s.Node)
			add(node, &all[i], p.Event, p.Time)
			continue
		}
		s.Left++
		nodeOf[i] = node
		if others[node] == nil {
			others[node] = new(uses)
			nodes = append(nodes, node)
		}
		others[node].add(&all[i])
	}
	b.stacks -= len(s.Node)
	s.First = len(s.Node)
	rowOf := make(map[int]int)
	for _, node := range nodes {
		rowOf[node] = len(s.Node)
		add(b.child(node, otherFrame), others[node], 0, 0)
	}
	for i, node := range nodeOf {
		rows[i] = rowOf[node]
	}
	return s, rows
}
