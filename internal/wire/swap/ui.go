package swap

// UIFile is the beginning of the file that UI_HIERARCHY names: its head and what
// all objects begin with, up to the type-specific part of the first one. That part
// is not self-delimiting, so the rest is kept as it is.
var UIFile = Message{
	Name: "UI_FILE", Note: "head and first object; what follows is the part of its type and further objects",
	Layouts: []Layout{
		{Fields: []Field{
			{Name: "request", Type: U8, Values: []Value{{0, "none"}, {1, "all"}, {2, "elementary"}}},
			{Name: "count", Type: U32, Note: "objects"},
			{Name: "address", Type: Pointer},
			{Name: "category", Type: U8, Values: []Value{{1, "Evas"}, {2, "Elementary"}, {3, "Edje"}}},
			{Name: "type_code", Type: U32},
			{Name: "type_name", Type: String},
			{Name: "rendering_time", Type: Time},
			{Name: "parent", Type: Pointer, Note: "0 for the root"},
			{Name: "x", Type: I32}, {Name: "y", Type: I32}, {Name: "w", Type: I32}, {Name: "h", Type: I32},
			{Name: "focus", Type: U8}, {Name: "name", Type: String}, {Name: "visible", Type: U8},
			{Name: "red", Type: U32}, {Name: "green", Type: U32}, {Name: "blue", Type: U32}, {Name: "alpha", Type: U32},
			{Name: "anti_alias", Type: U8}, {Name: "scale", Type: Float},
			{Name: "min_w", Type: I32}, {Name: "min_h", Type: I32}, {Name: "max_w", Type: I32}, {Name: "max_h", Type: I32},
			{Name: "request_w", Type: I32}, {Name: "request_h", Type: I32},
			{Name: "align_x", Type: Float}, {Name: "align_y", Type: Float}, {Name: "weight_x", Type: Float}, {Name: "weight_y", Type: Float},
			{Name: "pad_left", Type: I32}, {Name: "pad_right", Type: I32}, {Name: "pad_top", Type: I32}, {Name: "pad_bottom", Type: I32},
			{Name: "render_op", Type: U8},
			{Name: "text", Type: String, If: "category", Is: 1 << 2},
			{Name: "style", Type: String, If: "category", Is: 1 << 2},
			{Name: "disabled", Type: U8, If: "category", Is: 1 << 2},
			{Name: "widget", Type: String, If: "category", Is: 1 << 2},
			{Name: "animation", Type: U8, If: "category", Is: 1 << 3},
			{Name: "play", Type: U8, If: "category", Is: 1 << 3},
			{Name: "edje_scale", Type: Float, If: "category", Is: 1 << 3},
			{Name: "base_scale", Type: Float, If: "category", Is: 1 << 3},
			{Name: "edje_min_w", Type: I32, If: "category", Is: 1 << 3},
			{Name: "edje_min_h", Type: I32, If: "category", Is: 1 << 3},
			{Name: "edje_max_w", Type: I32, If: "category", Is: 1 << 3},
			{Name: "edje_max_h", Type: I32, If: "category", Is: 1 << 3},
		}},
		{Name: "empty", Note: "no objects", Fields: []Field{
			{Name: "request", Type: U8}, {Name: "count", Type: U32, Check: IsZero},
		}},
	},
}
