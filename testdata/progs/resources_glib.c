// SPDX-License-Identifier: Apache-2.0
/*
 * resources_glib: makes objects of GLib, takes and drops references in all ways, and prints what
 * module gobject records. See resources.h.
 */
#include "resources.h"
#include <glib-object.h>

/* A type of this program with a part that it drops when it ends. */
typedef struct {
	GObject base;
	GObject *part;
	char room[40];
} Whole;

typedef struct {
	GObjectClass base;
} WholeClass;

/* A type whose first reference nobody owns. */
typedef struct {
	GInitiallyUnowned base;
	int number;
} Floating;

typedef struct {
	GInitiallyUnownedClass base;
} FloatingClass;

G_DEFINE_TYPE(Whole, whole, G_TYPE_OBJECT)
G_DEFINE_TYPE(Floating, floating, G_TYPE_INITIALLY_UNOWNED)

static void taken(const char *function, void *object, size_t size, const char *type)
{
	char args[60];

	snprintf(args, sizeof(args), " type=%s", type);
	allocated(function, "gobject", (uintptr_t)object, size, args);
}

static void dropped(const char *function, void *object)
{
	freed(function, "gobject", (uintptr_t)object);
}

static void whole_init(Whole *self)
{
	self->part = g_object_new(G_TYPE_OBJECT, NULL);
	taken("g_object_new", self->part, sizeof(GObject), "GObject");
}

static void whole_dispose(GObject *object)
{
	Whole *self = (Whole *)object;

	if (self->part) {
		dropped("g_object_unref", self->part);
		g_object_unref(self->part);
		self->part = NULL;
	}
	G_OBJECT_CLASS(whole_parent_class)->dispose(object);
}

static void whole_get(GObject *object, guint id, GValue *value, GParamSpec *spec)
{
	(void)id;
	(void)spec;
	g_value_set_object(value, ((Whole *)object)->part);
}

static void whole_set(GObject *object, guint id, const GValue *value, GParamSpec *spec)
{
	(void)object;
	(void)id;
	(void)value;
	(void)spec;
}

static void whole_class_init(WholeClass *class)
{
	G_OBJECT_CLASS(class)->dispose = whole_dispose;
	G_OBJECT_CLASS(class)->get_property = whole_get;
	G_OBJECT_CLASS(class)->set_property = whole_set;
	g_object_class_install_property(
		G_OBJECT_CLASS(class), 1,
		g_param_spec_object("part", "", "", G_TYPE_OBJECT, G_PARAM_READWRITE));
}

static void floating_init(Floating *self)
{
	self->number = 1;
}

static void floating_class_init(FloatingClass *class)
{
	(void)class;
}

/* drop logs before it acts, because what the object itself drops comes after it. */
static void drop(void *object)
{
	dropped("g_object_unref", object);
	g_object_unref(object);
}

static void plain(void)
{
	GObject *a = g_object_new(G_TYPE_OBJECT, NULL), *b;
	const char *none[1];
	GValue no_value;

	taken("g_object_new", a, sizeof(GObject), "GObject");
	g_object_ref(a);
	taken("g_object_ref", a, sizeof(GObject), "GObject");
	drop(a);
	b = g_object_ref_sink(a);
	taken("g_object_ref_sink", b, sizeof(GObject), "GObject");
	drop(a);
	drop(a);
	b = g_object_new_with_properties(G_TYPE_OBJECT, 0, none, &no_value);
	taken("g_object_new_with_properties", b, sizeof(GObject), "GObject");
	dropped("g_object_unref|g_clear_object", b);
	g_clear_object(&b);
	b = NULL;
	(g_clear_object)(&b);
	G_GNUC_BEGIN_IGNORE_DEPRECATIONS
	b = g_object_newv(G_TYPE_OBJECT, 0, NULL);
	G_GNUC_END_IGNORE_DEPRECATIONS
	taken("g_object_newv", b, sizeof(GObject), "GObject");
	dropped("g_clear_object", b);
	(g_clear_object)(&b);
}

static void derived(void)
{
	Whole *w = g_object_new(whole_get_type(), "part", NULL, NULL);
	Floating *f;

	taken("g_object_new", w, sizeof(Whole), "Whole");
	g_object_ref(w);
	taken("g_object_ref", w, sizeof(Whole), "Whole");
	drop(w);
	drop(w);
	f = g_object_new(floating_get_type(), NULL);
	taken("g_object_new", f, sizeof(Floating), "Floating");
	g_object_ref_sink(f); /* takes the existing reference */
	g_object_ref_sink(f);
	taken("g_object_ref_sink", f, sizeof(Floating), "Floating");
	drop(f);
	drop(f);
}

/* Functions for each element of a list: the compiler makes jumps of these calls. */
static void take_each(gpointer object, gpointer data)
{
	(void)data;
	g_object_ref(object);
}

static void drop_each(gpointer object, gpointer data)
{
	(void)data;
	g_object_unref(object);
}

/* borrowed makes the library take and drop references, for the program or for itself. */
static void borrowed(void)
{
	GObject *a = g_object_new(G_TYPE_OBJECT, NULL), *b;
	GValue value = G_VALUE_INIT;
	GList *list = NULL;
	GWeakRef weak;

	taken("g_object_new", a, sizeof(GObject), "GObject");
	g_value_init(&value, G_TYPE_OBJECT);
	g_value_set_object(&value, a);
	b = g_value_dup_object(&value);
	taken("g_value_dup_object", b, sizeof(GObject), "GObject");
	g_value_unset(&value);
	g_weak_ref_init(&weak, a);
	b = g_weak_ref_get(&weak);
	taken("g_weak_ref_get", b, sizeof(GObject), "GObject");
	g_weak_ref_clear(&weak);
	for (int i = 0; i < 3; i++)
		list = g_list_prepend(list, a);
	for (int i = 0; i < 3; i++)
		taken("g_object_ref", a, sizeof(GObject), "GObject");
	g_list_foreach(list, take_each, NULL);
	for (int i = 0; i < 3; i++)
		dropped("g_object_unref", a);
	g_list_foreach(list, drop_each, NULL);
	for (int i = 0; i < 3; i++)
		dropped("g_object_unref", a);
	g_list_free_full(list, g_object_unref);
}

int main(void)
{
	plain();
	derived();
	borrowed();
	return tell();
}
