// Package browser lets tests open pages in a headless Chromium, use them as a person does, and
// inspect them. It uses the DevTools protocol over a pair of pipes, and only as much of it as
// tests need.
package browser

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// Page is a page in a browser of its own.
type Page struct {
	t       testing.TB
	to      *os.File
	session string

	mu      sync.Mutex
	next    int
	waiting map[int]chan reply
	loaded  chan struct{}
	faults  []string // exceptions, failed and forbidden requests
	fetched []string // URLs
}

type reply struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// message is anything that the browser sends.
type message struct {
	ID     int
	Method string
	Params json.RawMessage
	reply
}

// Open starts a browser with a window of the given size in pixels and opens the
// file at path in it. The browser ends with the test.
func Open(t testing.TB, path string, width, height int) *Page {
	t.Helper()
	program := testutil.Installed(t, "chromium")
	fromUs, toBrowser := pipe(t)
	fromBrowser, toUs := pipe(t)
	cmd := exec.Command(program,
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
		"--force-color-profile=srgb", "--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir()) // tests may have set it to nothing useful
	cmd.ExtraFiles = []*os.File{fromUs, toUs}                     // descriptors 3 and 4
	var output strings.Builder
	cmd.Stderr = &output
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", program, err)
	}
	_ = fromUs.Close() // now the browser's
	_ = toUs.Close()
	p := &Page{t: t, to: toBrowser, waiting: make(map[int]chan reply), loaded: make(chan struct{}, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.read(fromBrowser)
	}()
	t.Cleanup(func() {
		_ = p.send("Browser.close", nil, nil) // it may have ended already
		_ = toBrowser.Close()
		<-ended
		_ = cmd.Wait() // how it ended does not matter
		_ = fromBrowser.Close()
		if t.Failed() {
			t.Logf("chromium output:\n%s", output.String())
		}
	})
	p.attach(width, height)
	p.do("Page.navigate", map[string]any{"url": "file://" + path}, nil)
	if _, ok := <-p.loaded; !ok {
		t.Fatal("the browser ended before the page was loaded")
	}
	return p
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

// attach makes a page and subscribes to its events.
func (p *Page) attach(width, height int) {
	p.t.Helper()
	var target struct{ TargetID string }
	p.do("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	p.do("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	p.session = session.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		p.do(domain+".enable", nil, nil)
	}
	p.Resize(width, height)
}

// Resize changes the size of the window.
func (p *Page) Resize(width, height int) {
	p.t.Helper()
	p.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// Dark sets the colour scheme that the page takes for its reader's preference.
func (p *Page) Dark(dark bool) {
	p.t.Helper()
	value := "light"
	if dark {
		value = "dark"
	}
	p.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": value}}}, nil)
}

// Eval evaluates an expression in the page, waits for it if it is a promise, and stores its
// value, converted through JSON, in the variable that into points to. into may be nil.
func (p *Page) Eval(expression string, into any) {
	p.t.Helper()
	var out struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	p.do("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &out)
	if e := out.ExceptionDetails; e != nil {
		p.t.Fatalf("%s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(out.Result.Value, into); err != nil {
		p.t.Fatalf("%s: %v in %s", expression, err, out.Result.Value)
	}
}

// Text returns the text of the element that a CSS selector matches.
func (p *Page) Text(selector string) (text string) {
	p.t.Helper()
	p.Eval(fmt.Sprintf("document.querySelector(%q).textContent", selector), &text)
	return text
}

// Click clicks in the middle of an element.
func (p *Page) Click(selector string) {
	p.t.Helper()
	var at struct{ X, Y float64 }
	p.Eval(fmt.Sprintf("(e => { e.scrollIntoView({block: 'nearest'}); const b = e.getBoundingClientRect(); return {x: b.x + b.width / 2, y: b.y + b.height / 2}; })(document.querySelector(%q))", selector), &at)
	p.ClickAt(at.X, at.Y)
}

// ClickAt clicks at a position in the window.
func (p *Page) ClickAt(x, y float64) {
	p.t.Helper()
	p.MoveTo(x, y)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		p.do("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}, nil)
	}
}

// MoveTo moves the mouse.
func (p *Page) MoveTo(x, y float64) {
	p.t.Helper()
	p.do("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": x, "y": y}, nil)
}

// Drag presses the button at a position in the window, moves the mouse sideways and releases it there.
func (p *Page) Drag(from, to, y float64) {
	p.t.Helper()
	p.MoveTo(from, y)
	for _, step := range []struct {
		kind string
		x    float64
	}{{"mousePressed", from}, {"mouseMoved", (from + to) / 2}, {"mouseMoved", to}, {"mouseReleased", to}} {
		p.do("Input.dispatchMouseEvent", map[string]any{"type": step.kind, "x": step.x, "y": y, "button": "left", "buttons": 1, "clickCount": 1}, nil)
	}
}

// shift is the modifier of keys that are pressed with Shift.
const shift = 8

// Key presses a key given by its name, such as "ArrowLeft", "Shift+ArrowLeft" or "+".
func (p *Page) Key(name string) {
	p.t.Helper()
	text, modifiers := "", 0
	if key, ok := strings.CutPrefix(name, "Shift+"); ok {
		name, modifiers = key, shift
	}
	if len(name) == 1 {
		text = name
	}
	p.do("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": name, "text": text, "modifiers": modifiers}, nil)
	p.do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": name}, nil)
}

// Screenshot returns an image of the window as PNG.
func (p *Page) Screenshot() []byte {
	p.t.Helper()
	var out struct{ Data string }
	p.do("Page.captureScreenshot", map[string]any{"format": "png"}, &out)
	data, err := base64.StdEncoding.DecodeString(out.Data)
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}

// Faults returns what went wrong in the page so far: exceptions, and requests
// that failed or were forbidden.
func (p *Page) Faults() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.faults...)
}

// Fetched returns the URLs that were requested so far.
func (p *Page) Fetched() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.fetched...)
}

// do sends a command and stores its result.
func (p *Page) do(method string, params, into any) {
	p.t.Helper()
	if err := p.send(method, params, into); err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
}

func (p *Page) send(method string, params, into any) error {
	answer := make(chan reply, 1)
	p.mu.Lock()
	p.next++
	id := p.next
	if p.waiting != nil {
		p.waiting[id] = answer
	} else {
		close(answer)
	}
	p.mu.Unlock()
	command := map[string]any{"id": id, "method": method}
	if params != nil {
		command["params"] = params
	}
	if p.session != "" && method != "Browser.close" {
		command["sessionId"] = p.session
	}
	text, err := json.Marshal(command)
	if err != nil {
		return err
	}
	if _, err := p.to.Write(append(text, 0)); err != nil {
		return err
	}
	r, ok := <-answer
	switch {
	case !ok:
		return fmt.Errorf("the browser ended")
	case r.Error != nil:
		return fmt.Errorf("%s", r.Error.Message)
	case into == nil:
		return nil
	}
	return json.Unmarshal(r.Result, into)
}

// read reads the browser's messages until it ends.
func (p *Page) read(from *os.File) {
	r := bufio.NewReader(from)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			break
		}
		var m message
		if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
			continue // tests do not need it
		}
		p.mu.Lock()
		if answer := p.waiting[m.ID]; answer != nil && m.Method == "" {
			answer <- m.reply
			delete(p.waiting, m.ID)
		}
		p.event(&m)
		p.mu.Unlock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, answer := range p.waiting {
		close(answer)
	}
	p.waiting = nil
	close(p.loaded)
}

// event records what happened in the page.
func (p *Page) event(m *message) {
	switch m.Method {
	case "Page.loadEventFired":
		select {
		case p.loaded <- struct{}{}:
		default:
		}
	case "Runtime.exceptionThrown", "Log.entryAdded":
		p.faults = append(p.faults, string(m.Params))
	case "Network.requestWillBeSent":
		var e struct{ Request struct{ URL string } }
		if json.Unmarshal(m.Params, &e) == nil {
			p.fetched = append(p.fetched, e.Request.URL)
		}
	}
}
