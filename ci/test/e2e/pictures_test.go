package e2e

import (
	"context"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// pictureFile is where a picture of that name is written for the pages of docs/; empty unless
// `make pictures` runs the tests.
func pictureFile(name string) string {
	dir := os.Getenv("SLIPWAY_PICTURES")
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// withoutPaths leaves the flags with paths of this machine out of a page's text.
const withoutPaths = `(() => {
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replace(/ --(config|platform|bundle) \/[^ )]*/g, "");
	return true;
})()`

// screenshot writes the top of a page, that many pixels, as docs/images/NAME.png.
func screenshot(t *testing.T, html, name string, height int64) {
	t.Helper()
	file := pictureFile(name + ".png")
	if file == "" {
		return
	}
	p := openPage(t, html)
	require.NoError(t, chromedp.Do(p.ctx, chromedp.EmulateViewport(1280, height)))
	require.True(t, eval[bool](t, p, withoutPaths))
	shot, err := chromedp.Run(p.ctx, func(ctx context.Context, t *chromedp.Target) (cdppage.CaptureScreenshotResult, error) {
		return cdp.Call(ctx, t, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{Format: "png"})
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, shot.Data, 0o644))
}

// drawn writes lines of a terminal as docs/images/NAME.svg.
func drawn(t *testing.T, name, text string) {
	t.Helper()
	file := pictureFile(name + ".svg")
	if file == "" {
		return
	}
	const column, row, margin = 8.4, 18, 14
	lines, widest := strings.Split(strings.TrimRight(text, "\n"), "\n"), 0
	for _, line := range lines {
		widest = max(widest, len([]rune(line)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" role="img" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">`+"\n",
		float64(widest)*column+2*margin, len(lines)*row+2*margin)
	b.WriteString(`<rect width="100%" height="100%" rx="6" fill="#16181d"/>` + "\n")
	for i, line := range lines {
		if line != "" {
			fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#e6e6e6" xml:space="preserve">%s</text>`+"\n", margin, margin+i*row+13, html.EscapeString(line))
		}
	}
	b.WriteString("</svg>\n")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
}
