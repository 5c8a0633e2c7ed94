package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"rtrace-bpf/cmd/internal/renaming"
	"rtrace-bpf/internal/cli"
)

// renameCommand renames recorded files with a word instead of the process id, like
// rtrace-rename of sp-rtrace.
func renameCommand() command {
	return command{
		name: "rename",
		page: cli.Page{
			Summary:  "rename the files of a process with a word instead of its id",
			Synopsis: []string{"[flags] PID [NAME]", "[flags] PID NAME PID NAME..."},
			About: "Renames the files of the process PID in the current folder: rtrace-raw-PID-…, PID.rtrace… and PID-….rtrace…, for example 4711-0.rtrace.txt. NAME " +
				"replaces the id. The default, also with -, is the name of the process, if a trace contains it.\n\n" +
				"Side files are renamed too, and so are attachments whose names begin with the id; the names in traces are updated. No file is overwritten without " +
				"--force. If a file exists, or anything else fails, the files of that process keep their names.",
			Examples: []cli.Example{
				{Does: "name the recordings of a process after it", Command: "rtrace rename 4711"},
				{Does: "name those of two processes, and only print what would happen", Command: "rtrace rename --dry-run 4711 before 4712 after"},
			},
			Exit: []cli.ExitRow{
				{Code: cli.OK, Text: "done"},
				{Code: cli.Failed, Text: "failed, there are no such files, or one would be overwritten"},
				{Code: cli.Usage, Text: "the command line is wrong"},
			},
		},
		setup: func(f *flags) runFunc {
			var (
				force, dry bool
				dir        string
			)
			what := f.group("What to do")
			what.StringVarP(&dir, "dir", "C", ".", "rename in the folder `DIR`")
			what.BoolVar(&force, "force", false, "overwrite other files")
			what.BoolVar(&dry, "dry-run", false, "print what would be renamed, and rename nothing")
			return func(_ context.Context, s cli.Streams, args []string) error {
				pairs, err := pidsAndNames(args)
				if err != nil {
					return err
				}
				files := 0
				for _, x := range pairs {
					n, err := rename(s, dir, x[0], x[1], force, dry)
					files += n
					if err != nil {
						return err
					}
				}
				if !dry {
					_, err = fmt.Fprintf(s.Out, "Renamed %d files.\n", files)
				}
				return err
			}
		},
	}
}

// pidsAndNames splits the arguments; a name that is still to be found is empty.
func pidsAndNames(args []string) ([][2]string, error) {
	if len(args) == 1 {
		args = append(args, "-")
	}
	if len(args) == 0 || len(args)%2 != 0 {
		return nil, cli.Usagef("a process ID and a name are needed, or several pairs of them; write rtrace rename 4711 web")
	}
	var pairs [][2]string
	for i := 0; i < len(args); i += 2 {
		pid, name := args[i], args[i+1]
		if n, err := strconv.ParseUint(pid, 10, 31); err != nil || strconv.FormatUint(n, 10) != pid {
			return nil, cli.Usagef("%s: not a process ID; write one and a name, such as rtrace rename 4711 web", pid)
		}
		if name == "-" {
			name = ""
		} else if !renaming.IsName(name) || name == pid {
			return nil, cli.Usagef("%q cannot replace %s: a name begins with a letter or digit, and may also contain . _ + -", name, pid)
		}
		pairs = append(pairs, [2]string{pid, name})
	}
	return pairs, nil
}

// rename renames the files of one process and returns their number.
func rename(s cli.Streams, dir, pid, name string, force, dry bool) (int, error) {
	plan, err := renaming.NewPlan(dir, pid, name)
	switch {
	case errors.Is(err, renaming.ErrNoFiles):
		return 0, cli.WithHint(fmt.Errorf("no files of process %s in %s", pid, dir), "they are called rtrace-raw-"+pid+"-0 or "+pid+"-0.rtrace; see -C")
	case errors.Is(err, renaming.ErrNoName):
		return 0, cli.WithHint(fmt.Errorf("no file of process %s contains its name", pid), "give a NAME after the id")
	case err != nil:
		return 0, err
	}
	if dry {
		if err := plan.Check(force); err != nil {
			return 0, exists(err)
		}
		for i := range plan.Files {
			if _, err := fmt.Fprintf(s.Out, "%s -> %s\n", plan.Files[i].Old, plan.Files[i].New); err != nil {
				return 0, err
			}
		}
		return len(plan.Files), nil
	}
	if err := plan.Apply(force); err != nil {
		return 0, exists(err)
	}
	return len(plan.Files), nil
}

// exists adds what to do about an existing file.
func exists(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return cli.WithHint(err, "no file of this process was renamed; remove that file, or choose another name")
	}
	return err
}
