package plan

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/site"
	"rtrace-bpf/tracer/site/cover"
)

// Ways is how calls that allocate are recorded.
type Ways uint8

// The ways to record calls that allocate.
const (
	WaysReturns Ways = iota // by a probe at the function's entry and a return probe
	WaysPaths               // by probes inside the function, where that is proved to be right
)

// WayChoices returns the ways by name.
func WayChoices() map[string]Ways {
	return map[string]Ways{"returns": WaysReturns, "paths": WaysPaths}
}

// pathSite is a site in the middle of a function with its probe.
type pathSite struct {
	cover.Site
	probe Probe
}

// paths are the probes that record a function's calls without an entry and a return probe.
type paths struct {
	sites []pathSite
	// why is the reason why the function has none; nil if it has, or none were wanted.
	why error
}

// covered reports whether the function has path probes.
func (p *paths) covered() bool { return len(p.sites) > 0 }

// Reasons why a function keeps its entry and return probes.
var (
	errNotAllocating = errors.New("its result is not a block")
	errRare          = errors.New("it is obsolete, and hardly any program calls it")
	errWraps         = errors.New("it may call another allocator")
	errNoTable       = errors.New("its file has no unwind table that contains it")
	errNotCheaper    = errors.New("it would not cost less")
	errSameAddress   = errors.New("two sites are at one address")
	errFrame         = errors.New("the caller's frame pointer is not where a probe can read it")
	errDeep          = errors.New("a value is too far up the stack")
	errCondition     = errors.New("the condition of a site has no room")
	errMachine       = errors.New("this machine's code is not analysed")
	errHelper        = errors.New("the kernel's helper finds no stack from inside the function")
)

// obsolete lists functions that allocate for whole pages.
var obsolete = []string{"valloc", "pvalloc"}

// choosePaths finds the sites of a function that record its calls at lower costs than an entry
// and a return probe. If there are none, it sets the reason. number is the function's.
func (c *code) choosePaths(fn *Function, number int, o *Options) {
	if o.Ways != WaysPaths || !fn.row.returns() {
		return
	}
	fn.paths.sites, fn.paths.why = c.findPaths(fn, number, o)
}

func (c *code) findPaths(fn *Function, number int, o *Options) ([]pathSite, error) {
	switch {
	case fn.row.operation != opAlloc || fn.ends != nil || !fn.Returns:
		return nil, errNotAllocating
	case slices.Contains(obsolete, fn.Name):
		return nil, errRare // the analysis would delay every start
	case c.machine.Arch != site.AMD64:
		return nil, errMachine
	case o.Unwind == UnwindHelper && o.Frames() > 0:
		return nil, errHelper
	case fn.wraps:
		return nil, errWraps
	case c.tracedFrames() == nil:
		return nil, errNoTable
	}
	im, err := c.pathImage()
	if err != nil {
		return nil, err
	}
	f := cover.Function{Name: fn.Name, Entry: fn.symbol.Addr, Args: fn.arguments()}
	if fn.row.count != none && !fn.wholeArguments {
		f.Factors = [2]int{fn.row.size, fn.row.count}
	}
	p, err := im.finder.Find(f, cover.UsualCosts)
	switch {
	case err != nil:
		return nil, err
	case p.HotReturns > 0 || p.HotTraps > 1:
		return nil, errNotCheaper
	case p.Opaque && c.unknown(fn):
		return nil, errWraps
	}
	if err := c.unreachable(im, p.Calls); err != nil {
		return nil, err
	}
	return c.packPaths(fn, number, p)
}

// pathImage returns the code of the file for package cover. It is read at the first call.
func (c *code) pathImage() (*pathImage, error) {
	if c.paths.image == nil && c.paths.err == nil {
		c.paths.image, c.paths.err = readPathImage(c)
	}
	return c.paths.image, c.paths.err
}

// packPaths makes the probes of a plan.
func (c *code) packPaths(fn *Function, number int, p *cover.Plan) ([]pathSite, error) {
	var all []pathSite
	for i := range p.Sites {
		s := pathSite{Site: p.Sites[i]}
		if slices.ContainsFunc(all, func(o pathSite) bool { return o.Addr == s.Addr }) {
			return nil, errSameAddress
		}
		probe, ok := c.probe(fn.Name, s.Addr)
		if !ok {
			return nil, fmt.Errorf("%#x is not in the file", s.Addr)
		}
		packed, err := c.packPath(fn, &s.Site)
		if err != nil {
			return nil, err
		}
		s.probe = probe
		s.probe.Site = packed | uint64(number) | probe.Distance/uint64(os.Getpagesize())<<40 | uint64(c.number)<<62
		all = append(all, s)
	}
	return all, nil
}

// packPath packs a site without the number of its function and the place of its code.
func (c *code) packPath(fn *Function, s *cover.Site) (uint64, error) {
	if s.Role == cover.Return {
		f := *fn
		f.Site = site.Site{Addr: s.Addr, Insn: s.Insn}
		for i := range s.Args {
			if s.Args[i].Stack {
				return 0, errDeep
			}
			f.Site.Args = append(f.Site.Args, site.Place{Reg: s.Args[i].Reg, Product: s.Args[i].Product})
		}
		return f.pack(0, c.machine.Word) | fn.flow(c.tails(fn)), nil
	}
	x := pathPacker{fn: fn, site: s, word: int(c.machine.Word)}
	return x.pack()
}

// pathPacker packs a site in the middle of a function: see bpf/pass.h.
type pathPacker struct {
	fn   *Function
	site *cover.Site
	word int

	onStack uint64 // the bit of sites of which some value is on the stack, if it is set
}

const (
	passStack  = 16 // the first number of a place that is a word of the stack
	passFrames = 7  // most words from the return address down to the saved frame pointer
	passPushed = 63 // most words pushed before the site
)

func (x *pathPacker) pack() (uint64, error) {
	s := x.site
	role := map[cover.Role]object.ProbePassRole{
		cover.Report: object.ProbePassRolePASS_REPORT, cover.Note: object.ProbePassRolePASS_NOTE,
		cover.Finish: object.ProbePassRolePASS_FINISH,
	}[s.Role]
	packed := uint64(role)<<59 | site.NoReg<<14 | site.NoReg<<19 | site.NoReg<<24
	put := func(p cover.Place, shift int) error {
		n, err := x.place(p)
		packed = packed&^(site.NoReg<<shift) | n<<shift
		return err
	}
	var errs []error
	if s.Role != cover.Note {
		errs = append(errs, put(s.Block, 24))
	}
	if s.Role != cover.Finish {
		args := x.fn.arguments()
		size := s.Args[slices.Index(args, x.fn.row.size)]
		errs = append(errs, put(size, 14))
		if x.fn.row.count != none && !size.Product {
			errs = append(errs, put(s.Args[slices.Index(args, x.fn.row.count)], 19))
		}
		if x.fn.wholeArguments && x.fn.row.alignment != 0 {
			errs = append(errs, put(s.Args[slices.Index(args, x.fn.row.alignment-1)], 19))
			packed |= 1 << 38
		}
	}
	pushed := s.StackAdjust / x.word
	if s.StackAdjust%x.word != 0 || pushed < 0 || pushed > passPushed {
		errs = append(errs, errDeep)
	}
	packed |= uint64(pushed) << 29
	frame, err := x.frame(pushed)
	packed |= frame << 35
	condition, err2 := x.condition()
	return packed | condition | x.onStack, errors.Join(append(errs, err, err2)...)
}

// place returns the number of a place.
func (x *pathPacker) place(p cover.Place) (uint64, error) {
	if !p.Stack {
		return uint64(p.Reg), nil
	}
	x.onStack = 1 << 61
	n := passStack + p.Offset/x.word
	if p.Offset < 0 || p.Offset%x.word != 0 || n >= site.NoReg {
		return 0, errDeep
	}
	return uint64(n), nil
}

// frame returns how many words below the return address the caller's frame pointer was saved,
// or 0 if it is in its register. A Note needs none.
func (x *pathPacker) frame(pushed int) (uint64, error) {
	p := x.site.Frame
	switch down := pushed - p.Offset/x.word; {
	case x.site.Role == cover.Note, !p.Stack && p.Reg == frameAMD64:
		return 0, nil
	case p.Stack && down > 0 && down <= passFrames:
		return uint64(down), nil
	}
	return 0, errFrame
}

// frameAMD64 is the number of rbp.
const frameAMD64 = 5

// condition packs the condition of the site.
func (x *pathPacker) condition() (uint64, error) {
	when := x.site.When
	if when.Kind == cover.Flags {
		code := uint64(when.Code)
		if when.Not {
			code ^= 1
		}
		return code<<10 | 1<<39, nil
	}
	if when.Kind != cover.Always || when.Not {
		return 0, errCondition
	}
	return 0, nil
}

// Inside returns how many sites inside the function record its calls. If there are none, the
// error is the reason; it is nil if none were wanted.
func (f *Function) Inside() (sites int, why error) { return len(f.paths.sites), f.paths.why }
