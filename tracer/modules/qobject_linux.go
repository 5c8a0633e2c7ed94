package modules

import "rtrace-bpf/trace"

const (
	qtResource    = "qobject"
	qtConstructor = "QObject::QObject"
	qtDestructor  = "QObject::~QObject"
)

// qobject is the module for objects of Qt. Every object passes through one constructor and
// destructor of QObject, so calls of Qt itself count too. One of these
// functions may call another one for the same object, as those that also free it do.
var qobject = Module{
	Name: "qobject", Desc: "objects of Qt",
	Resources: []trace.Resource{{Type: qtResource, Desc: "QObject instance"}},
	rows: []row{
		{
			symbols: []string{
				"_ZN7QObjectC1EPS_", "_ZN7QObjectC2EPS_",
				"_ZN7QObjectC1ER14QObjectPrivatePS_", "_ZN7QObjectC2ER14QObjectPrivatePS_",
				"_ZN7QObjectC1EPS_PKc", "_ZN7QObjectC2EPS_PKc", // Qt 4
			}, name: qtConstructor, args: "p", everywhere: true, first: firstOfObject,
			does: []step{func(c *call) { c.alloc(qtResource, c.word(0), 1) }},
		},
		{
			symbols: []string{"_ZN7QObjectD0Ev", "_ZN7QObjectD1Ev", "_ZN7QObjectD2Ev"},
			name:    qtDestructor, args: "p", everywhere: true, first: firstOfObject,
			frees: []freeing{{resource: qtResource, id: arg(0)}},
		},
	},
}

// lastObject is the object that a thread has last made or destroyed, and the function.
type lastObject struct {
	id           uint64
	kind, symbol string
}

// lastObjects holds the last object of each thread.
type lastObjects map[uint32]lastObject

// firstOfObject reports that the call is not made by another one for the same object.
func firstOfObject(c *call) bool {
	this := lastObject{c.word(0), c.function, c.entry.Function.Symbol}
	last := c.objects[c.entry.TID]
	for tid, other := range c.objects { // the address is free for a new object
		if other.id == this.id {
			delete(c.objects, tid)
		}
	}
	c.objects[c.entry.TID] = this
	return last.id != this.id || last.kind != this.kind || last.symbol == this.symbol
}
