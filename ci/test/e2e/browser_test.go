package e2e

import (
	"context"
	_ "embed"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// opened is a page in a browser, and what it said and asked for.
type opened struct {
	ctx context.Context
	url string

	mu       sync.Mutex
	console  []string
	requests []string // URLs
}

// pageLimit bounds everything that one page is put through.
const pageLimit = 3 * time.Minute

// openPage opens a file in a browser of its own.
func openPage(t *testing.T, file string) *opened {
	t.Helper()
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(browser(t)), chromedp.DisableGPU)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it has none for root
	}
	allocator, end := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(end)
	tab, _ := chromedp.NewContext(allocator)
	t.Cleanup(func() { require.NoError(t, chromedp.Cancel(tab)) }) // and waits until it has ended
	p := &opened{url: "file://" + file}
	require.NoError(t, chromedp.Listen(tab, p.hear), "start the browser")
	ctx, cancel := context.WithTimeout(tab, pageLimit)
	t.Cleanup(cancel)
	p.ctx = ctx
	require.NoError(t, chromedp.Do(ctx, call(network.Enable, network.EnableParams{}), chromedp.EmulateViewport(1280, 900)))
	p.load(t)
	return p
}

// browser finds Chromium, which `make e2e` installs.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("SLIPWAY_E2E") != "" {
		t.Fatal("there is no chromium: apt-get install chromium")
	}
	t.Skip("needs chromium: apt-get install chromium")
	return ""
}

func (p *opened) hear(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		for _, a := range e.Args {
			p.console = append(p.console, string(a.Value))
		}
	case *runtime.EventExceptionThrown:
		p.console = append(p.console, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		p.console = append(p.console, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	}
}

// call is a command of the protocol without a result of interest.
func call[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

func (p *opened) load(t *testing.T) {
	t.Helper()
	require.NoError(t, chromedp.Do(p.ctx, chromedp.Navigate(p.url)))
	// With the functions that the tests use; no script of the page is needed.
	require.NoError(t, chromedp.Do(p.ctx, discard(chromedp.Evaluate[bool](probes+"; true"))))
}

// probes are functions that look at the page.
//
//go:embed testdata/probes.js
var probes string

func discard[T any](a chromedp.Action[T]) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := a(ctx, t)
		return chromedp.Void{}, err
	}
}

// eval runs an expression in the page.
func eval[T any](t *testing.T, p *opened, expression string) T {
	t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	require.NoError(t, err, expression)
	return v
}

// poll waits for a condition that the page comes to by itself.
func poll(t *testing.T, p *opened, condition string) {
	t.Helper()
	require.Eventually(t, func() bool { return eval[bool](t, p, condition) }, 10*time.Second, 20*time.Millisecond, condition)
}

func (p *opened) scheme(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, chromedp.Do(p.ctx, call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})))
}
