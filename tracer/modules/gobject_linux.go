package modules

import (
	"slices"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/functions"
)

const objectResource = "gobject"

// gobject is the module for references to objects of GLib. References that libgobject takes and
// drops for itself do not count. Each way to make an object is a separate function here. In some
// versions these functions call each other, but those are calls of the library itself.
var gobject = Module{
	Name: "gobject", Desc: "references to objects of GLib",
	Resources: []trace.Resource{{Type: objectResource, Desc: "GObject instance", RefCount: true}},
	rows: []row{
		{
			symbols: makers,
			args:    "x", result: 'p', follow: functions.FollowResult, steps: toType, first: firstOfReference, ok: notNull, does: []step{makesObject},
		},
		{
			symbols: []string{"g_value_dup_object", "g_weak_ref_get"},
			args:    "p", result: 'p', follow: functions.FollowResult, steps: toType, first: firstOfReference, ok: notNull, does: []step{makesObject},
		},
		{symbols: []string{"g_object_ref", "g_object_add_toggle_ref"}, args: "p", follow: 1, steps: toType, first: firstOfReference, ok: isObject, does: []step{takesObject}},
		{symbols: []string{"g_object_ref_sink"}, args: "p", follow: 1, steps: toType, extra: dataWord, first: firstOfReference, ok: isOwned, does: []step{takesObject}},
		{
			symbols: []string{"g_object_unref", "g_object_remove_toggle_ref", "g_type_free_instance"}, args: "p", first: firstOfReference, ok: isObject,
			frees: []freeing{{resource: objectResource, id: arg(0)}},
		},
		{
			symbols: []string{"g_value_take_object"}, args: "pp", first: firstOfReference, ok: func(c *call) bool { return c.word(1) != 0 },
			frees: []freeing{{resource: objectResource, id: arg(1)}},
		},
		{
			symbols: []string{"g_clear_object"}, args: "p", follow: 1, steps: []int64{0},
			first: firstOfReference, ok: func(c *call) bool { return c.entry.Followed() != 0 },
			frees: []freeing{{resource: objectResource, id: func(c *call) uint64 { return c.entry.Followed() }}},
		},
		{symbols: []string{"g_type_register_static"}, args: "xspd", result: 'x', follow: 3, steps: []int64{sizeWord}, ok: notNull, everywhere: true, does: []step{registers(1)}},
		{symbols: []string{"g_type_register_fundamental"}, args: "xspp", result: 'x', follow: 3, steps: []int64{sizeWord}, ok: notNull, everywhere: true, does: []step{registers(1)}},
		{symbols: []string{"g_type_module_register_type"}, args: "pxspd", result: 'x', follow: 4, steps: []int64{sizeWord}, ok: notNull, everywhere: true, does: []step{registers(2)}},
	},
}

// The functions of libgobject that may end in a jump to others.
var (
	makers = []string{"g_object_new", "g_object_newv", "g_object_new_valist", "g_object_new_with_properties", "g_type_create_instance"}
	takers = []string{"g_value_dup_object", "g_weak_ref_get", "g_object_add_toggle_ref", "g_object_ref_sink"}
	givers = []string{"g_object_unref", "g_object_remove_toggle_ref", "g_clear_object", "g_value_take_object"}
)

var firstOfReference = notJumped(func(from, to string) bool {
	switch to {
	case "g_object_ref":
		return slices.Contains(takers, from)
	case "g_object_unref", "g_type_free_instance":
		return from != to && slices.Contains(givers, from)
	}
	return from != to && slices.Contains(makers, from) && slices.Contains(makers, to)
})

// The layout of GObject and GTypeInfo comes from their headers, in words: it is part of the
// interface. GObject's data, with a bit that is set while nobody owns the first reference, has
// had its place since that bit exists.
const (
	dataWord = 2
	floating = 2
	sizeWord = 6 // of GTypeInfo, with the size of an instance
)

// toType leads from an instance through its class to the type.
var toType = []int64{0, 0}

// The type of GObject itself, which has a fixed number in the interface, and its size in words.
const (
	plainObject = 20 << 2
	plainWords  = 3
)

// objectType is what is known about a type. Only types that the process has registered while it
// was traced are known.
type objectType struct {
	name string
	size uint64
}

// typesOf returns the known types, by number.
func typesOf(c *call) map[uint64]objectType {
	return stateOf(c, func() map[uint64]objectType {
		size := uint64(plainWords * 8)
		if c.narrow {
			size = plainWords * 4
		}
		return map[uint64]objectType{plainObject: {"GObject", size}}
	})
}

// registers is the step that registers a type whose name is an argument.
func registers(name int) step {
	return func(c *call) {
		if text, ok := c.text(name); ok {
			typesOf(c)[c.result()] = objectType{text, c.entry.Followed() & 0xffff}
		}
	}
}

func isObject(c *call) bool { return c.word(0) != 0 }

// isOwned reports whether the object of g_object_ref_sink has an owner already. If not, no
// reference is added.
func isOwned(c *call) bool { return isObject(c) && c.entry.Extra()&floating == 0 }

func makesObject(c *call) { addReference(c, c.result(), c.exit.Followed()) }

func takesObject(c *call) { addReference(c, c.word(0), c.entry.Followed()) }

// addReference records a reference to an object of the type with a number.
func addReference(c *call, id, number uint64) {
	t, known := typesOf(c)[number]
	if !known {
		c.alloc(objectResource, id, 0)
		return
	}
	c.alloc(objectResource, id, t.size, fixed("type", t.name))
}
