package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"rtrace-bpf/internal/analysis/stacks"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/outfile"
	"rtrace-bpf/internal/report/pprof"
	"rtrace-bpf/internal/topview"
)

// topScreen shows a watching in a terminal.
type topScreen struct {
	flags         *topFlags
	watching      *watching
	model         *topview.Model
	colours       bool
	width, height int
	naming        bool // names are being looked up
	saving        bool // a profile is being written, or a trace completed
}

var _ tea.Model = (*topScreen)(nil)

// Messages of the screen.
type (
	refreshed struct { // figures of another moment
		snapshot *topview.Snapshot
		last     bool
	}
	named struct{} // some names are known
	saved struct { // a file was written, or could not be
		path string
		err  error
	}
)

// show shows the terminal interface until the user quits or ctx ends. It returns the number
// of columns of the terminal.
func (t *topFlags) show(ctx context.Context, s cli.Streams, w *watching, model *topview.Model, env settings) (width int, err error) {
	screen := &topScreen{flags: t, watching: w, model: model, colours: !t.noColour && env.get("NO_COLOR") == ""}
	p := tea.NewProgram(screen, tea.WithInput(s.In), tea.WithOutput(s.Out), tea.WithoutSignalHandler(), tea.WithoutCatchPanics())
	done := make(chan struct{})
	var refreshing sync.WaitGroup
	refreshing.Go(func() { t.refresh(ctx, w, p, done) })
	_, err = p.Run()
	close(done)
	refreshing.Wait()
	return cmp.Or(screen.width, topview.TableWidth), err
}

// refresh sends figures to the screen, at each interval until done is closed, and quits when
// ctx ends.
func (t *topFlags) refresh(ctx context.Context, w *watching, p *tea.Program, done <-chan struct{}) {
	tick := time.NewTicker(t.interval)
	defer tick.Stop()
	over := w.over
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			p.Quit()
			return
		case <-over:
			over = nil
			tick.Stop()
			p.Send(refreshed{w.snapshot(), true})
		case <-tick.C:
			p.Send(refreshed{w.snapshot(), false})
		}
	}
}

// Init implements tea.Model.
func (x *topScreen) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (x *topScreen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		x.width, x.height = msg.Width, msg.Height
	case refreshed:
		x.model.Update(msg.snapshot, msg.last)
	case named:
		x.naming = false
		x.model.Refresh()
	case tea.PasteMsg:
		x.model.Press("", msg.Content)
	case tea.KeyPressMsg:
		switch x.model.Press(msg.String(), msg.Key().Text) {
		case topview.Quit:
			return x, tea.Quit
		case topview.SaveReport:
			x.tell(x.save(".txt", func(w io.Writer) error { return x.model.WriteTable(w, everyRow, topview.TableWidth) }))
		case topview.SaveJSON:
			x.tell(x.save(".json", func(w io.Writer) error { return x.model.WriteJSON(w, everyRow) }))
		case topview.Trace:
			if cmd := x.trace(); cmd != nil {
				return x, cmd
			}
		case topview.Suspend:
			return x, tea.Exec(suspension{}, nil)
		case topview.SaveProfile:
			if x.saving {
				break
			}
			x.saving = true
			x.model.Tell("writing a profile, which takes as long as reading all symbols …")
			now := x.model.Snapshot()
			return x, func() tea.Msg { return x.profile(now) }
		}
	case saved:
		x.saving = false
		x.tell(msg.path, msg.err)
	}
	return x, x.name()
}

// everyRow is more rows than there can be.
const everyRow = 1 << 30

// atOnce is how many call sites are named before the rows are shown again.
const atOnce = 50

// name returns the command that names call sites of the screen, if there are any.
func (x *topScreen) name() tea.Cmd {
	if x.naming {
		return nil
	}
	missing := x.model.Missing(x.height)
	if len(missing) == 0 {
		return nil
	}
	x.naming = true
	missing = missing[:min(len(missing), atOnce)]
	return func() tea.Msg {
		for _, site := range missing {
			x.watching.Name(site)
		}
		return named{}
	}
}

// profile writes a profile.
func (x *topScreen) profile(now *topview.Snapshot) saved {
	p := x.watching.Profile(now.State)
	p.Name = now.Processes[0].Name
	path, err := x.save(".pb.gz", func(w io.Writer) error { return pprof.Write(w, p, stacks.InuseSpace) })
	return saved{path, err}
}

// trace begins traces, or returns the command that completes them.
func (x *topScreen) trace() tea.Cmd {
	switch traces := x.watching.traces; {
	case x.saving:
	case traces.On():
		x.saving = true
		x.model.Tell("completing the trace …")
		return func() tea.Msg {
			paths, err := traces.Stop()
			return saved{strings.Join(paths, ", "), err}
		}
	default:
		paths, err := traces.Start()
		if err != nil {
			x.model.Tell("no trace: " + err.Error())
			break
		}
		x.watching.written = append(x.watching.written, paths...)
		x.model.Tell("writing " + strings.Join(paths, ", ") + " from now on; t ends it")
	}
	return nil
}

// tell shows which file was written, or why none was.
func (x *topScreen) tell(path string, err error) {
	if err != nil {
		x.model.Tell(err.Error())
		return
	}
	x.model.Tell("wrote " + path)
}

// save writes a new file in the current directory, and returns its path.
func (x *topScreen) save(suffix string, write func(io.Writer) error) (path string, err error) {
	out, err := outfile.CreateNumbered(".", fmt.Sprintf("rtrace-top-%d", x.watching.report.pids[0]), suffix)
	if err != nil {
		return "", err
	}
	if err := write(out); err != nil {
		return "", errors.Join(err, out.Discard())
	}
	return out.Path(), out.Close()
}

// View implements tea.Model.
func (x *topScreen) View() tea.View {
	view := tea.NewView("")
	view.AltScreen = true
	if x.width == 0 {
		return view // the size is not known yet
	}
	var b strings.Builder
	for i, line := range x.model.View(x.width, x.height) {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(x.styled(line))
	}
	view.Content = b.String()
	return view
}

// styles are the attributes of lines in a terminal. A warning is bold, and yellow where
// colours are wanted.
var styles = map[topview.Style]string{
	topview.Title: "\x1b[1m", topview.Heading: "\x1b[4m", topview.Selected: "\x1b[7m", topview.Warning: "\x1b[1m",
}

// styled returns a line with its attributes.
func (x *topScreen) styled(line topview.Line) string {
	style := styles[line.Style]
	if style == "" || line.Text == "" {
		return line.Text
	}
	if line.Style == topview.Warning && x.colours {
		style += "\x1b[33m"
	}
	return style + line.Text + "\x1b[m"
}

// kept is a writer that keeps messages while the screen is shown.
type kept struct {
	mu   sync.Mutex
	text bytes.Buffer
	to   io.Writer // where messages go
	held bool      // they are kept
}

// Write implements io.Writer.
func (k *kept) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.held {
		return k.to.Write(b)
	}
	return k.text.Write(b)
}

// release writes what was kept, and from now on everything at once.
func (k *kept) release() {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, _ = k.to.Write(k.text.Bytes()) // there is no other place for messages
	k.held = false
}

// hold keeps messages from now on.
func (k *kept) hold() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held = true
}
