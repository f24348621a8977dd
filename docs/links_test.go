package docs

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLinksLeadSomewhere: every relative link of the repository's pages is to a file or a
// directory that is there, and its anchor to a heading of that page.
func TestLinksLeadSomewhere(t *testing.T) {
	pages := map[string]*page{}
	require.NoError(t, filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != ".." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin") {
			return fs.SkipDir
		}
		if filepath.Ext(name) == ".md" && !entry.IsDir() {
			text, err := os.ReadFile(name)
			pages[filepath.ToSlash(name)] = readPage(string(text))
			return err
		}
		return nil
	}))
	require.Greater(t, len(pages), 40)
	links := 0
	for name, p := range pages {
		for _, link := range p.links {
			links++
			if err := leads(pages, name, link); err != nil {
				t.Errorf("%s: %s: %v", strings.TrimPrefix(name, "../"), link, err)
			}
		}
	}
	require.Greater(t, links, 200)
}

// leads returns why a link of a page leads nowhere.
func leads(pages map[string]*page, from, link string) error {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "" {
		return err
	}
	to := from
	if u.Path != "" {
		to = path.Join(path.Dir(from), u.Path)
	}
	if _, err := os.Stat(to); err != nil {
		return err
	}
	if u.Fragment == "" {
		return nil
	}
	target := pages[to]
	if target == nil || !target.anchors[u.Fragment] {
		return fmt.Errorf("%s has no heading %q", strings.TrimPrefix(to, "../"), u.Fragment)
	}
	return nil
}

// page is what matters of a page here.
type page struct {
	links   []string
	anchors map[string]bool
}

var (
	fenced   = regexp.MustCompile("(?ms)^ *(```|~~~).*?^ *(```|~~~)$")
	inline   = regexp.MustCompile("`[^`\n]*`")
	linked   = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)`)
	labelled = regexp.MustCompile(`(?m)^\[[^\]]+\]: (\S+)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
	label    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	dropped  = regexp.MustCompile(`[^\p{L}\p{N}\p{M}\- _]`)
)

func readPage(text string) *page {
	text = fenced.ReplaceAllString(text, "")
	p := &page{anchors: map[string]bool{}}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := anchor(m[1])
		for i, first := 1, name; p.anchors[name]; i++ {
			name = fmt.Sprintf("%s-%d", first, i)
		}
		p.anchors[name] = true
	}
	text = inline.ReplaceAllString(text, "")
	for _, all := range [][][]string{linked.FindAllStringSubmatch(text, -1), labelled.FindAllStringSubmatch(text, -1)} {
		for _, m := range all {
			p.links = append(p.links, m[1])
		}
	}
	return p
}

// anchor is what GitHub calls a heading in a link.
func anchor(heading string) string {
	text := dropped.ReplaceAllString(label.ReplaceAllString(strings.TrimSpace(heading), "$1"), "")
	return strings.ReplaceAll(strings.ToLower(text), " ", "-")
}

func TestLinksThatLeadNowhere(t *testing.T) {
	pages := map[string]*page{"links_test.md": readPage("# A `b`, [c](d.md)\n## Twice\n```\n# not [one](nowhere)\n```\n## Twice\n[x](errors.md#y \"title\") `[no](z)`\n[l]: ../README.md\n")}
	require.Equal(t, []string{"d.md", "errors.md#y", "../README.md"}, pages["links_test.md"].links)
	require.Equal(t, map[string]bool{"a-b-c": true, "twice": true, "twice-1": true}, pages["links_test.md"].anchors)
	require.NoError(t, leads(pages, "links_test.md", "https://example.com/x#y"))
	require.NoError(t, leads(pages, "links_test.md", "../README.md"))
	require.Error(t, leads(pages, "links_test.md", "nowhere.md"))
	require.ErrorContains(t, leads(pages, "links_test.md", "errors.md#y"), `errors.md has no heading "y"`)
}
