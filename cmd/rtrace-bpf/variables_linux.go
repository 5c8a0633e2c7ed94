package main

import (
	"cmp"
	"fmt"
	"strings"
)

// variable is one of sp-rtrace's environment variables, and the flag that it sets unless
// the command line does.
type variable struct {
	name, flag string
	yields     string // another flag that, on the command line, has priority
	isSwitch   bool
}

// variables have the same meaning as in sp-rtrace. The list has the names in its README and
// those in its code.
var variables = []variable{
	{name: "SP_RTRACE_OUTPUT_DIR", flag: "output"},
	{name: "SP_RTRACE_BACKTRACE_DEPTH", flag: "depth"},
	{name: "SP_RTRACE_BACKTRACE_ALL", flag: "backtrace-all", isSwitch: true},
	{name: "SP_RTRACE_POSTPROC", flag: "postproc"},
	{name: "SP_RTRACE_PRELOAD", flag: "enable"},
	{name: "SP_RTRACE_DISABLE_EVENT_BUFFERING", flag: "no-buffer", isSwitch: true},
	{name: "SP_RTRACE_DISABLE_PACKET_BUFFERING", flag: "no-buffer", isSwitch: true},
	{name: "SP_RTRACE_START", flag: "start", yields: "start-paused", isSwitch: true},
	{name: "SP_RTRACE_TOGGLE_SIGNAL", flag: "toggle-signal"},
	{name: "SP_RTRACE_MANAGE_PREPROC", flag: "follow-forks", yields: "managed", isSwitch: true},
	{name: "SP_RTRACE_ENABLE_ARGUMENTS", flag: "args", isSwitch: true},
	{name: "SP_RTRACE_MALLINFO", flag: "heap-info", isSwitch: true},
	{name: "SP_RTRACE_LIBUNWIND", flag: "libunwind", yields: "unwind", isSwitch: true},
}

// ignoredVariables have no effect here, for the reason why. They cause warnings instead of
// errors, because they may have been set for another program.
var ignoredVariables = []struct {
	variable
	why string
}{
	{variable{name: "SP_RTRACE_DISABLE_TIMESTAMP", isSwitch: true}, "events are ordered by their times"},
	{variable{name: "SP_RTRACE_DISABLE_TIMESTAMPS", isSwitch: true}, "events are ordered by their times"},
	{variable{name: "SP_RTRACE_MONITOR_SIZE"}, "blocks of all sizes have stacks; --min-size leaves out small blocks"},
	{variable{name: "SP_RTRACE_INPUT_FILE"}, "rtrace-bpf reads no traces"},
	{variable{name: "SP_RTRACE_AUDIT"}, "nothing is loaded into the process; -e names modules"},
}

// get returns the value of an environment variable, empty for none.
func (env *settings) get(name string) string {
	if env.variable == nil {
		return ""
	}
	return env.variable(name)
}

// showsUTF8 reports whether the locale has characters outside of ASCII.
func (env *settings) showsUTF8() bool {
	locale := strings.ToLower(cmp.Or(env.get("LC_ALL"), env.get("LC_CTYPE"), env.get("LANG")))
	return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
}

// value returns what a variable is set to, empty for nothing.
func (v *variable) value(env *settings) string {
	text := env.get(v.name)
	switch {
	case !v.isSwitch:
		return text
	case text == "" || text == "0":
		return ""
	}
	return "true"
}

// apply sets the flags that the command line does not set. It returns warnings about
// variables that are ignored.
func (env *settings) apply(c *config) (warnings []string, err error) {
	for i := range variables {
		v := &variables[i]
		if text := v.value(env); text != "" && !c.flags.Given(v.yields) && !c.flags.Given(v.flag) {
			if v.flag == "postproc" {
				c.output.postproc.variable = v.name
			}
			if err := c.flags.Set(v.flag, text); err != nil {
				return nil, fmt.Errorf("%s: %w", v.name, err)
			}
		}
	}
	for i := range ignoredVariables {
		if u := &ignoredVariables[i]; u.value(env) != "" {
			warnings = append(warnings, fmt.Sprintf("%s is ignored: %s", u.name, u.why))
		}
	}
	return warnings, nil
}
