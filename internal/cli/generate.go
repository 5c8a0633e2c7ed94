package cli

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// Generate writes the manual pages and the completion scripts to a folder, at their places
// below share/ of an installation. also are pages of other programs.
func (p *Program) Generate(dir string, also ...string) error {
	files := map[string][]byte{
		"bash-completion/completions/" + p.Page.Name:         []byte(p.Bash()),
		"zsh/site-functions/_" + p.Page.Name:                 []byte(p.Zsh()),
		"fish/vendor_completions.d/" + p.Page.Name + ".fish": []byte(p.Fish()),
	}
	pages := append([]*Page{p.Page}, p.Subcommands...)
	names := make([]string, len(pages))
	for i, page := range pages {
		names[i] = strings.ReplaceAll(page.Name, " ", "-")
	}
	for i, page := range pages {
		see := slices.Clone(also)
		if i == 0 {
			see = append(see, names[1:]...)
		} else {
			see = append(see, names[0])
		}
		slices.Sort(see)
		var b bytes.Buffer
		if err := page.WriteMan(&b, see); err != nil {
			return err
		}
		files["man/man1/"+names[i]+".1"] = b.Bytes()
	}
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making the folder of %s: %w", name, err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}
