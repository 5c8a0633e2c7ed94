package resolve

import "strings"

// modules is the files that are or were mapped.
type modules struct {
	all    map[moduleKey]*module
	latest map[string]*module // by path: the file that was last described
}

type moduleKey struct{ path, buildID string }

func newModules() modules {
	return modules{all: make(map[moduleKey]*module), latest: make(map[string]*module)}
}

// get returns the module with the given path and build ID, which it creates if
// necessary.
func (k *modules) get(path, buildID string) *module {
	buildID = strings.ToLower(buildID)
	if m, ok := k.all[moduleKey{path, buildID}]; ok {
		return m
	}
	path, buildID = strings.Clone(path), strings.Clone(buildID)
	m := &module{path: path, buildID: buildID, frames: frames{bare: &frame{module: path, text: "from " + path}}}
	k.all[moduleKey{path, buildID}] = m
	return m
}

// mapped returns the module that a mapping of path refers to now.
func (k *modules) mapped(path string) *module {
	if m, ok := k.latest[path]; ok {
		return m
	}
	m := k.get(path, "")
	m.waiting = true
	return m
}
