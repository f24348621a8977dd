package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// TestReportPage opens the pages that the tests of pipeline/report write: of a
// run that went well, of one that failed with hostile text in its logs, and of one with the
// phases of a platform release.
func TestReportPage(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"succeeded", "failed", "phases"} {
		t.Run(name, func(t *testing.T) {
			requireReadable(t, filepath.Join(root(t), "pipeline/report/testdata", name))
		})
	}
}

// record is what of report.json the page has to show.
type record struct {
	dir   string
	ID    string `json:"id"`
	Steps []struct {
		Stage  string    `json:"stage"`
		Step   string    `json:"step"`
		Status string    `json:"status"`
		Log    string    `json:"log"`
		Began  time.Time `json:"started"`
		Fault  *struct {
			Code string `json:"code"`
			Fix  string `json:"fix"`
		} `json:"fault"`
	} `json:"steps"`
	Apps []struct {
		Name   string `json:"name"`
		Health string `json:"health"`
	} `json:"apps"`
}

// ending is the last line of a step's log; false when the step has none. Of a
// directory without any logs, whatever the page shows will do.
func (r record) ending(t *testing.T, log string) (string, bool) {
	t.Helper()
	if log == "" {
		return "", false
	}
	text, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(log)))
	if os.IsNotExist(err) {
		_, err := os.Stat(filepath.Join(r.dir, "steps"))
		return "", os.IsNotExist(err)
	}
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1], len(text) > 0
}

// requireReadable opens report.html of a run's directory in a browser and asserts
// that everybody can read all of it: by eye in light and dark, with the keyboard,
// with a screen reader, on a phone, without scripts and without a network.
func requireReadable(t *testing.T, dir string) {
	t.Helper()
	r := record{dir: dir}
	text, err := os.ReadFile(filepath.Join(dir, "report.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &r))
	p := openPage(t, filepath.Join(dir, "report.html"))
	t.Run("everything is there", func(t *testing.T) { p.complete(t, r) })
	t.Run("a screen reader gets landmarks and names", func(t *testing.T) { p.named(t, r) })
	t.Run("links open the steps", func(t *testing.T) { p.linked(t, r) })
	t.Run("the keyboard reaches and opens every step", func(t *testing.T) { p.reachable(t, r) })
	t.Run("light and dark have contrast", func(t *testing.T) { p.contrasting(t) })
	t.Run("a phone shows it", func(t *testing.T) { p.narrow(t) })
	t.Run("it needs no script", func(t *testing.T) { p.scriptless(t, r) })
	t.Run("it is quiet and loads nothing", func(t *testing.T) { p.quiet(t) })
}

func (p *opened) complete(t *testing.T, r record) {
	type shown struct{ ID, Name, Summary, Log, Text, Row string }
	steps := eval[[]shown](t, p, "probe.steps()")
	require.Len(t, steps, len(r.Steps))
	for i, s := range r.Steps {
		require.Equal(t, s.Step, steps[i].Name)
		require.Contains(t, steps[i].Summary, s.Status)
		require.Contains(t, steps[i].Row, s.Step, "its row of the timeline")
		require.Contains(t, steps[i].Row, s.Status)
		if end, ok := r.ending(t, s.Log); ok {
			require.NotEmpty(t, steps[i].Log)
			require.Contains(t, steps[i].Log, end)
		}
		if s.Fault != nil {
			require.Contains(t, steps[i].Text, s.Fault.Code)
			require.Contains(t, steps[i].Text, s.Fault.Fix)
		}
	}
	apps := eval[string](t, p, `document.querySelector("#applications").closest("section").textContent`)
	for _, a := range r.Apps {
		require.Contains(t, apps, a.Name)
		require.Contains(t, apps, a.Health)
	}
	require.Contains(t, eval[string](t, p, "document.body.textContent"), r.ID)
	require.Contains(t, eval[string](t, p, "document.title"), "Slipway")
	require.Empty(t, eval[string](t, p, "probe.intruders()"), "text became markup")
	lanes := eval[[]string](t, p, `Array.from(document.querySelectorAll(".timeline tr.lane th"), (th) => th.textContent)`)
	require.NotEmpty(t, lanes)
	require.Contains(t, lanes[0], "Critical path")
	require.Empty(t, eval[string](t, p, "probe.path()"), "the critical path is marked by more than colour")
}

// nodes is the accessibility tree: role and name of what is not ignored.
func (p *opened) nodes(t *testing.T) map[string][]string {
	t.Helper()
	tree, err := chromedp.Run(p.ctx, func(ctx context.Context, t *chromedp.Target) (accessibility.GetFullAXTreeResult, error) {
		return cdp.Call(ctx, t, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	})
	require.NoError(t, err)
	word := func(v *accessibility.Value) string {
		var s string
		if v != nil {
			_ = json.Unmarshal(v.Value, &s) // another type is no word
		}
		return s
	}
	out := map[string][]string{}
	for _, n := range tree.Nodes {
		if role := word(n.Role); !n.Ignored && role != "" {
			out[role] = append(out[role], word(n.Name))
		}
	}
	return out
}

func (p *opened) named(t *testing.T, r record) {
	nodes := p.nodes(t)
	for _, landmark := range []string{"banner", "navigation", "main", "contentinfo"} {
		require.Len(t, nodes[landmark], 1, landmark)
	}
	for _, role := range []string{"navigation", "region", "link", "button", "heading", "table", "rowheader", "columnheader", "DisclosureTriangle", "RootWebArea"} {
		require.NotEmpty(t, nodes[role], role)
		for _, name := range nodes[role] {
			require.NotEmpty(t, strings.TrimSpace(name), "a %s without a name", role)
		}
	}
	for i, s := range r.Steps {
		require.Contains(t, nodes["DisclosureTriangle"][i], s.Step)
		require.Contains(t, nodes["DisclosureTriangle"][i], s.Status)
	}
	require.Empty(t, nodes["image"], "icons say nothing that the text beside them does not")
	require.Equal(t, "en", eval[string](t, p, "document.documentElement.lang"))
	require.Empty(t, eval[string](t, p, "probe.headings()"), "headings skip no level")
	require.Empty(t, eval[string](t, p, "probe.ids()"), "ids are unique and exist")
}

func (p *opened) linked(t *testing.T, r record) {
	for i := range r.Steps {
		got := eval[string](t, p, `(() => {
			const step = document.querySelectorAll("details.step[id]")[`+strconv.Itoa(i)+`];
			step.open = false;
			document.querySelector(".timeline a[href='#" + step.id + "']").click();
			return step.id;
		})()`)
		poll(t, p, `document.getElementById("`+got+`").open && document.activeElement.parentElement.id === "`+got+`"`)
	}
	// Again, when the address is that already.
	require.True(t, eval[bool](t, p, `(() => {
		const step = document.getElementById(location.hash.slice(1));
		step.open = false;
		document.querySelector(".timeline a[href='" + location.hash + "']").click();
		return step.open;
	})()`))
	require.Equal(t, "0 of", eval[string](t, p, `document.getElementById("close-all").click(), probe.open() + " of"`))
	require.Equal(t, len(r.Steps), eval[int](t, p, `document.getElementById("open-all").click(), probe.open()`))
	p.load(t)
}

// reachable walks the whole page with the Tab key, opens what is closed with
// Enter, and comes out at the end.
func (p *opened) reachable(t *testing.T, r record) {
	require.NoError(t, chromedp.Do(p.ctx, chromedp.Navigate("about:blank")))
	p.load(t) // the focus is where it is when a page was opened
	var stops []string
	for range 60 + 12*len(r.Steps) {
		require.NoError(t, chromedp.Do(p.ctx, chromedp.KeyEvent(kb.Tab)))
		at := eval[string](t, p, "probe.focus()")
		if at == "" || len(stops) > 0 && at == stops[0] {
			break // once around
		}
		require.NotContains(t, at, "no outline")
		stops = append(stops, at)
		if strings.HasPrefix(at, "closed ") {
			require.NoError(t, chromedp.Do(p.ctx, chromedp.KeyEvent(kb.Enter)))
			require.Equal(t, "open"+strings.TrimPrefix(at, "closed"), eval[string](t, p, "probe.focus()"))
		}
	}
	require.NotEmpty(t, stops)
	require.Equal(t, "link Skip to the report", stops[0])
	at := 0
	next := func(what string) { // in this order
		for ; at < len(stops); at++ {
			if strings.TrimPrefix(strings.TrimPrefix(stops[at], "closed "), "open ") == what {
				return
			}
		}
		t.Fatalf("Tab does not come to %q in its turn; it comes to\n%s", what, strings.Join(stops, "\n"))
	}
	next("region Timeline")
	for _, s := range r.Steps {
		next("summary " + s.Step)
		if _, ok := r.ending(t, s.Log); ok {
			next("region Log of " + s.Step)
		}
	}
	require.Equal(t, 0, eval[int](t, p, `document.querySelectorAll("details:not([open])").length`))
}

func (p *opened) contrasting(t *testing.T) {
	defer p.scheme(t, "light")
	brightness := map[string]float64{}
	eval[bool](t, p, `document.querySelectorAll("details").forEach((d) => { d.open = true; }), true`)
	for _, scheme := range []string{"light", "dark"} {
		p.scheme(t, scheme)
		brightness[scheme] = eval[float64](t, p, "probe.brightness()")
		require.Greater(t, eval[int](t, p, "probe.texts().length"), 100)
		require.Empty(t, eval[[]string](t, p, "probe.faint(4.5)"), "text in %s", scheme)
		require.Empty(t, eval[[]string](t, p, "probe.faintBars(3)"), "bars in %s", scheme)
	}
	require.Greater(t, brightness["light"], 0.8)
	require.Less(t, brightness["dark"], 0.05)
}

func (p *opened) narrow(t *testing.T) {
	defer func() { require.NoError(t, chromedp.Do(p.ctx, chromedp.EmulateViewport(1280, 900))) }()
	for _, width := range []int64{320, 390, 768} {
		require.NoError(t, chromedp.Do(p.ctx, chromedp.EmulateViewport(width, 800)))
		require.LessOrEqual(t, eval[int64](t, p, "document.documentElement.scrollWidth"), width, "the page scrolls sideways")
		require.Empty(t, eval[string](t, p, "probe.small()"), "text too small to read")
	}
}

func (p *opened) scriptless(t *testing.T, r record) {
	disabled := func(v bool) {
		require.NoError(t, chromedp.Do(p.ctx, call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: v})))
		p.load(t)
	}
	disabled(true)
	defer disabled(false)
	require.True(t, eval[bool](t, p, `document.querySelector(".tools").hidden`), "buttons that would do nothing")
	p.complete(t, r)
}

func (p *opened) quiet(t *testing.T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Empty(t, p.console, "the console")
	require.NotEmpty(t, p.requests)
	for _, url := range p.requests {
		if file, _, _ := strings.Cut(url, "#"); file != p.url && !strings.HasPrefix(url, "data:") && url != "about:blank" {
			t.Errorf("the page asked for %s", url)
		}
	}
}
