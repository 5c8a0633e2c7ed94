package main

import (
	"errors"
	"io"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/tracer/plan"
)

const name = "rtrace-bpf"

// config is the command line, by topic. Each topic declares its flags, checks them and
// sets the options of the tracer that they are about.
type config struct {
	flags   flags.Groups
	command []string // to be started; nil for none

	target     targetFlags
	allocators allocatorFlags
	modules    moduleFlags
	dotnet     dotnetFlags
	stacks     stackFlags
	output     outputFlags
	format     formatFlags
	limits     limitFlags
	buffers    bufferFlags
	remote     remoteFlags
	general    generalFlags
	kernel     kernelFlags
	originals  originalFlags
}

// declare declares all flags. Groups are listed in the help in this order.
func (c *config) declare() {
	c.target.declare(c.flags.Group("What is traced"))
	c.allocators.declare(c.flags.Group("Allocators"))
	c.modules.declare(c.flags.Group("Modules"))
	c.dotnet.declare(c.flags.Group("Dotnet"))
	c.stacks.declare(c.flags.Group("Stacks"))
	output := c.flags.Group("Output")
	c.output.declare(output)
	c.format.declare(output, c.flags.Group("Formats"))
	recording := c.flags.Group("Recording")
	c.limits.declare(recording)
	c.buffers.declare(recording)
	general := c.flags.Group("General")
	c.general.declare(general)
	c.flags.Help(general, "h")
	hidden := c.flags.Hidden()
	c.declareReplaced(hidden)
	c.kernel.declare(hidden)
	c.originals.declare(&c.flags)
	c.target.follow.declareOriginals(&c.flags, hidden)
}

// declareReplaced declares flags that verbs have replaced. Help does not show them.
func (c *config) declareReplaced(hidden *pflag.FlagSet) {
	hidden.BoolVar(&c.limits.dryRun, "dry-run", c.limits.dryRun, "") // set by the verb plan
	hidden.BoolVarP(&c.modules.list, "list", "l", false, "")
	hidden.VarP((*flags.PID)(&c.remote.toggle), "toggle", "t", "")
	hidden.Var((*flags.PID)(&c.remote.mark), "mark", "")
}

// parse reads the command line and the environment, and checks that the flags go
// together.
func (c *config) parse(args []string, env settings) error {
	c.declare()
	rest, command, err := c.flags.ParseCommand(name, args)
	if err != nil {
		return err
	}
	c.command = command
	if c.format.name == "" {
		c.format.name = encoder.Default
		if c.dotnet.on {
			c.format.name = "nettrace"
		} else if c.limits.budget > 0 {
			c.format.name = budgetFormat
		}
	}
	switch {
	case c.general.version, c.modules.list:
		return nil
	case c.remote.any():
		return c.remote.take(rest)
	}
	if c.general.warnings, err = env.apply(c); err != nil {
		return err
	}
	if err := c.originals.check(c); err != nil {
		return err
	}
	if err := c.checkTarget(rest); err != nil {
		return err
	}
	return c.check()
}

// checkTarget returns an error unless the command line selects processes, one to wait for,
// or a command. rest are the arguments that belong to no flag.
func (c *config) checkTarget(rest []string) error {
	if err := c.target.checkWait(c); err != nil {
		return err
	}
	switch {
	case len(rest) > 0:
		return unexpected(rest[0])
	case c.command != nil:
		return checkCommand(c)
	case c.target.selection.Empty():
		return errors.New("nothing is selected; name a process with -p PID, all of a kind with --comm, --cgroup or --uid, or a command to start after --")
	}
	return nil
}

// check returns an error if flags do not go together or have values that they cannot have.
func (c *config) check() error {
	if err := c.limits.check(c); err != nil {
		return err
	}
	for _, check := range []func(*config) error{
		c.output.checkSide, c.buffers.check, c.limits.checkValues, c.format.checkValues, c.allocators.checkValues, c.target.checkValues,
	} {
		if err := check(c); err != nil {
			return err
		}
	}
	if _, err := encoder.New(c.format.name, io.Discard, c.encoding()); err != nil {
		return err
	}
	var errs []error
	for _, check := range []func(*config) error{
		c.dotnet.check, c.format.check, c.output.check, c.allocators.checkHeapInfo, c.target.follow.check,
	} {
		errs = append(errs, check(c))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err := c.options()
	return err
}

// anyPID stands for the process that is not known yet.
const anyPID = 1

// options returns the tracer's options, except for the process.
func (c *config) options() (plan.Options, error) {
	o := plan.Options{PID: anyPID, Origin: name + " " + cli.BuildVersion()}
	var errs []error
	for _, set := range []func(*plan.Options) error{
		c.allocators.set, c.modules.set, c.stacks.set, c.format.set, c.limits.set, c.buffers.set, c.kernel.set,
	} {
		errs = append(errs, set(&o))
	}
	if err := errors.Join(errs...); err != nil {
		return o, err
	}
	return o, o.Check()
}
