package suite

import (
	"os"
	"path/filepath"

	"rtrace-bpf/vmtest/guest"
	"rtrace-bpf/vmtest/image"
)

// GuestPrograms is the folder of a guest with the programs that Prepare built.
const GuestPrograms = "/vmtest/programs"

// AddTo adds to an image what the tests of a package need, at the same paths as here, because
// test programs know where they were built.
func (t *Target) AddTo(im *image.Image, p Package, programs string) error {
	if err := im.File(p.Binary, p.Binary); err != nil {
		return err
	}
	im.Dir(p.Dir)
	// Some look for the root of the module.
	if err := im.File(filepath.Join(t.Root, "go.mod"), filepath.Join(t.Root, "go.mod")); err != nil {
		return err
	}
	for _, dir := range []string{
		filepath.Join(p.Dir, "testdata"), filepath.Join(t.Root, "testdata", "progs"),
		filepath.Join(t.Root, "testdata", "corpus"), // recorded streams, which tests play
		filepath.Join(t.Root, "docs"),               // tests compare the programs' help with it
	} {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		if err := im.Tree(dir, dir); err != nil {
			return err
		}
	}
	built, err := filepath.Glob(filepath.Join(programs, "*", "*"))
	if err != nil {
		return err
	}
	// Some need others, which must be added first.
	var again []string
	for _, path := range built {
		if addProgram(im, programs, path) != nil {
			again = append(again, path)
		}
	}
	for _, path := range again {
		if err := addProgram(im, programs, path); err != nil {
			return err
		}
	}
	return nil
}

func addProgram(im *image.Image, programs, path string) error {
	below, err := filepath.Rel(programs, path)
	if err != nil {
		return err
	}
	return im.File(filepath.Join(GuestPrograms, below), path)
}

// Job returns the job that runs the tests of a package. programs is the guest's folder with the
// prepared programs, env holds additional variables.
func (p Package) Job(args, files []string, programs string, env []string) guest.Job {
	return guest.Job{
		Name: p.Path, Dir: p.Dir, Args: append([]string{p.Binary}, args...), Files: files,
		Env: append([]string{
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
			"HOME=/tmp", "TMPDIR=/tmp", "USER=root", "LANG=C.UTF-8",
			"RTRACE_PREPARED=" + programs,
			"RTRACE_REQUIRE_BPF=1", // without BPF the tests must fail
		}, env...),
	}
}
