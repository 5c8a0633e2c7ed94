// Package apt downloads packages from Debian's suites independently of the system's apt: it has
// its own configuration, lists and cache. The system's network settings and trusted keys still
// apply. Packages are only unpacked, never installed.
package apt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// suites are names of suites in the archive and in the archive of security updates.
type suites struct{ archive, security []string }

// kernelSuites lists the suites in which kernels are searched. For suites that a mirror's archive
// does not have, apt prints a message and continues.
var kernelSuites = suites{
	archive:  []string{"bookworm", "bookworm-backports", "trixie", "trixie-backports", "sid", "experimental"},
	security: []string{"bullseye-security", "bookworm-security", "trixie-security"},
}

// fresh is how long lists are used before they are downloaded again.
const fresh = 12 * time.Hour

// Private is an apt that keeps all its state in one folder.
type Private struct {
	dir  string
	arch string
}

// Open sets up a private apt in dir for the packages of an architecture, given by Debian's
// name.
func Open(ctx context.Context, dir, arch string, mirror Mirror) (*Private, error) {
	return open(ctx, filepath.Join(dir, arch), arch, mirror, kernelSuites)
}

// OpenRelease is Open for the packages of one release, given by its code name.
func OpenRelease(ctx context.Context, dir, arch string, mirror Mirror, release string) (*Private, error) {
	s := suites{archive: []string{release}}
	if release != "sid" {
		s.security = []string{release + "-security"}
	}
	return open(ctx, filepath.Join(dir, release, arch), arch, mirror, s)
}

func open(ctx context.Context, dir, arch string, mirror Mirror, from suites) (*Private, error) {
	p := &Private{dir: dir, arch: arch}
	for _, sub := range []string{"lists/partial", "cache/archives/partial", "packages", "no-parts"} {
		if err := os.MkdirAll(filepath.Join(p.dir, sub), 0o755); err != nil {
			return nil, fmt.Errorf("set up a private apt: %w", err)
		}
	}
	unlock, err := p.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for name, text := range map[string]string{
		"status":       "",
		"sources.list": sourcesList(mirror, arch, from),
		"apt.conf":     p.configuration(),
		"last.conf":    lastConfiguration,
	} {
		if err := p.write(name, text); err != nil {
			return nil, fmt.Errorf("set up a private apt: %w", err)
		}
	}
	return p, nil
}

// write writes a file of the private apt, unless it has these contents already: a newer file
// would make apt discard its cache. Lists that were downloaded with other contents are not
// fresh.
func (p *Private) write(name, text string) error {
	path := filepath.Join(p.dir, name)
	if was, err := os.ReadFile(path); err == nil && string(was) == text {
		return nil
	}
	if err := os.Remove(p.stamp()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// stamp is the file whose date is that of the lists.
func (p *Private) stamp() string { return filepath.Join(p.dir, "updated") }

// sourcesList returns the sources list. Only package lists are downloaded.
func sourcesList(m Mirror, arch string, from suites) string {
	options := "arch=" + arch + " target=Packages lang=none"
	if m.Keyring != "" {
		options += " signed-by=" + m.Keyring
	}
	var b strings.Builder
	line := func(uri, suite string) { fmt.Fprintf(&b, "deb [%s] %s %s main\n", options, uri, suite) }
	for _, suite := range from.archive {
		line(m.Archive, suite)
	}
	if m.Security != "" {
		for _, suite := range from.security {
			line(m.Security, suite)
		}
	}
	return b.String()
}

func (p *Private) configuration() string {
	return fmt.Sprintf(`Dir::Etc::sourcelist "%[1]s/sources.list";
Dir::Etc::sourceparts "%[1]s/no-parts";
Dir::State "%[1]s";
Dir::State::status "%[1]s/status";
Dir::State::lists "%[1]s/lists";
Dir::Cache "%[1]s/cache";
APT::Architecture "%[2]s";
APT::Architectures { "%[2]s"; };
APT::Sandbox::User "root";
Acquire::Retries "3";
`, p.dir, p.arch)
}

// lastConfiguration overrides the system's configuration, which apt reads after APT_CONFIG.
// What the system does after an update (containers remove their caches, desktops notify their
// programs) must not happen here. A list that cannot be downloaded is an error, where apt would
// use an old one or none. And apt keeps its caches of parsed lists, which containers switch
// off.
const lastConfiguration = `#clear APT::Update;
APT::Update::Error-Mode "any";
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Cache::srcpkgcache "srcpkgcache.bin";
`

// run runs a command of apt in the folder for packages.
func (p *Private) run(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, slices.Concat([]string{"-c", filepath.Join(p.dir, "last.conf")}, args)...)
	cmd.Dir = filepath.Join(p.dir, "packages")
	cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(p.dir, "apt.conf"), "LC_ALL=C")
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("%s %s: %w: %s", name, args[0], err, lastLines(stderr.String(), 6))
	}
	return out.Bytes(), nil
}

// lastLines returns the last n lines of a text as one line.
func lastLines(text string, n int) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}

// Update downloads the lists unless they are fresh. A suite that cannot be downloaded is a
// warning, as long as others can be.
func (p *Private) Update(ctx context.Context) (warning, err error) {
	unlock, err := p.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if info, err := os.Stat(p.stamp()); err == nil && time.Since(info.ModTime()) < fresh {
		return nil, nil
	}
	_, warning = p.run(ctx, "apt-get", "-q", "update")
	found, err := filepath.Glob(filepath.Join(p.dir, "lists", "*_Packages*"))
	if err != nil {
		return warning, err
	}
	if len(found) == 0 {
		return nil, errors.Join(errors.New("cannot download the package lists of any Debian suite"), warning)
	}
	if warning != nil {
		return warning, nil
	}
	return nil, os.WriteFile(p.stamp(), nil, 0o644)
}

// Search returns the newest version of each package whose name matches a regular expression.
func (p *Private) Search(ctx context.Context, names string) ([]Package, error) {
	out, err := p.run(ctx, "apt-cache", "search", "--names-only", "--full", names)
	if err != nil {
		return nil, err
	}
	return parsePackages(bytes.NewReader(out))
}

// Download downloads a package and returns the path of the file. apt verifies it against the
// signed lists.
func (p *Private) Download(ctx context.Context, pkg Package) (string, error) {
	unlock, err := p.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	path := filepath.Join(p.dir, "packages", filepath.Base(pkg.File))
	if info, err := os.Stat(path); err == nil && info.Size() == pkg.Size {
		return path, nil
	}
	if _, err := p.run(ctx, "apt-get", "-q", "download", pkg.Name+"="+pkg.Version); err != nil {
		return "", err
	}
	// apt writes the version with its colon, if it has one, as %3a.
	found, err := filepath.Glob(filepath.Join(p.dir, "packages", pkg.Name+"_*_*.deb"))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("apt-get download %s: it left no file", pkg.Name)
	}
	for _, path := range found {
		if info, err := os.Stat(path); err == nil && info.Size() == pkg.Size {
			return path, nil
		}
	}
	return "", fmt.Errorf("apt-get download %s: no file has %d bytes", pkg.Name, pkg.Size)
}
