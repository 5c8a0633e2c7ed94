// Bomlicences completes the licences in SBOMs that cyclonedx-gomod has written with -licenses:
//
//	bomlicences SBOM LICENCE
//
// LICENCE is the one of the program. The module of every component must have a licence then.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := complete(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bomlicences:", err)
		os.Exit(1)
	}
}

// corrected is the licences of modules whose texts the detection does not recognise, or takes for those of
// others.
var corrected = map[string]string{
	"std":                           goLicence,
	"github.com/klauspost/compress": "Apache-2.0 AND BSD-3-Clause AND MIT", // it finds only the first
}

// goLicence is the licence of Go and of all modules golang.org/x.
const goLicence = "BSD-3-Clause"

// licenceOf returns the licence of a module, or an empty string if the detected one is right.
func licenceOf(module string) string {
	if strings.HasPrefix(module, "golang.org/x/") {
		return goLicence
	}
	return corrected[module]
}

func complete(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: bomlicences SBOM LICENCE")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	text, err = withLicences(text, args[1])
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return os.WriteFile(args[0], text, 0o644)
}

// withLicences returns an SBOM in which the program has a licence, and every module has its own.
func withLicences(text []byte, program string) ([]byte, error) {
	var bom struct {
		Metadata struct {
			Component map[string]any `json:"component"`
		} `json:"metadata"`
		Components []map[string]any `json:"components"`
	}
	var whole map[string]any
	for _, to := range []any{&bom, &whole} {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(to); err != nil {
			return nil, err
		}
	}
	metadata, ok := whole["metadata"].(map[string]any)
	if !ok || bom.Metadata.Component == nil || len(bom.Components) == 0 {
		return nil, errors.New("no SBOM of a program with modules")
	}
	state(bom.Metadata.Component, program)
	for _, c := range bom.Components {
		name, _ := c["name"].(string)
		if licence := licenceOf(name); licence != "" {
			state(c, licence)
		}
		if list, _ := c["licenses"].([]any); len(list) == 0 {
			return nil, fmt.Errorf("the licence of %s is not known; is the module in the cache of Go?", name)
		}
	}
	metadata["component"], whole["components"] = bom.Metadata.Component, bom.Components
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(whole)
	return out.Bytes(), err
}

// state sets the licence of a component, an SPDX expression.
func state(component map[string]any, licence string) {
	of := map[string]any{"license": map[string]any{"id": licence}}
	if strings.Contains(licence, " ") {
		of = map[string]any{"expression": licence}
	}
	component["licenses"] = []any{of}
}
