package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// TestPagesNameCommandsThatExist: what the pages and the examples for CI systems have people
// type is a command of slipway, a function of the module or a target of make, with flags that
// it has.
func TestPagesNameCommandsThatExist(t *testing.T) {
	var pages []string
	require.NoError(t, filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != ".." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin" || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir():
		case filepath.Ext(name) == ".md", strings.HasPrefix(filepath.ToSlash(name), "../examples/ci/"):
			pages = append(pages, name)
		}
		return nil
	}))
	c := newChecker(t)
	for _, name := range pages {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, line := range typed(string(text), filepath.Ext(name) == ".md") {
			for _, problem := range c.problems(line) {
				t.Errorf("%s: %q: %s", strings.TrimPrefix(filepath.ToSlash(name), "../"), line, problem)
			}
		}
	}
	for _, name := range []string{"slipway", "dagger call", "make"} {
		require.NotZero(t, c.seen[name], "no page has a command of %s", name)
	}
}

var (
	block = regexp.MustCompile("(?ms)^ *```[^\n]*\n(.*?)^ *```$")
	span  = regexp.MustCompile("`([^`\n]+)`")
)

// typed are the lines of code blocks and the spans of code in a page; of a script all lines.
func typed(text string, markdown bool) []string {
	text = strings.ReplaceAll(text, "\\\n", " ")
	if !markdown {
		return strings.Split(text, "\n")
	}
	var out []string
	for _, m := range block.FindAllStringSubmatch(text, -1) {
		out = append(out, strings.Split(m[1], "\n")...)
	}
	for _, m := range span.FindAllStringSubmatch(block.ReplaceAllString(text, ""), -1) {
		out = append(out, m[1])
	}
	return out
}

// checker knows what can be typed.
type checker struct {
	root    *cobra.Command
	module  map[string]arguments
	shared  arguments
	targets []string
	seen    map[string]int
}

func newChecker(t *testing.T) *checker {
	t.Helper()
	c := &checker{root: tree(t), seen: map[string]int{}}
	c.module, c.shared = surface(t)
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z/-]*(?: [a-z][a-z/-]*)*):`).FindAllStringSubmatch(string(makefile), -1) {
		c.targets = append(c.targets, strings.Fields(m[1])...)
	}
	return c
}

// A command ends where the shell or the sentence goes on; "make" begins one only where a
// command can begin.
var (
	command = regexp.MustCompile(`(?:^|[("'$!;&|/]\s*|- |: |or )(slipway|dagger call) ([^;&|#>()"…\n]*)`)
	making  = regexp.MustCompile(`(?:^|\$ |\$\(|&& |(?:run|bash): |^- |sh ')make ((?:-\S+ )*)([^;&|#>()"…\n]*)`)
)

// problems are what is wrong with the commands in a line.
func (c *checker) problems(line string) (all []string) {
	for _, m := range command.FindAllStringSubmatch(strings.TrimSpace(line), -1) {
		words := strings.Fields(strings.NewReplacer("[", " ", "]", " ", "'", "", ",", " ").Replace(m[2]))
		if len(words) == 0 {
			continue
		}
		c.seen[m[1]]++
		if m[1] == "slipway" {
			all = append(all, c.slipway(words)...)
		} else {
			all = append(all, c.call(words)...)
		}
	}
	for _, m := range making.FindAllStringSubmatch(strings.TrimSpace(line), -1) {
		for _, word := range strings.Fields(m[2]) {
			if !regexp.MustCompile(`^[a-z][a-z/-]*$`).MatchString(word) {
				break
			}
			c.seen["make"]++
			if !slices.Contains(c.targets, word) {
				all = append(all, "make has no target "+word)
			}
		}
	}
	return all
}

// flagName is the name of a long flag; empty if the word is none.
func flagName(word string) string {
	name, is := strings.CutPrefix(word, "--")
	name, _, _ = strings.Cut(name, "=")
	if !is || !regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(name) {
		return ""
	}
	return name
}

func (c *checker) slipway(words []string) (all []string) {
	at := c.root
	for i, word := range words {
		if word == "--" {
			break
		}
		if name := flagName(word); name != "" {
			if name != "help" && name != "version" && at.Flags().Lookup(name) == nil && at.PersistentFlags().Lookup(name) == nil && at.InheritedFlags().Lookup(name) == nil {
				all = append(all, fmt.Sprintf("%s has no --%s", at.CommandPath(), name))
			}
			continue
		}
		below := slices.IndexFunc(at.Commands(), func(sub *cobra.Command) bool { return sub.Name() == word })
		switch {
		case below >= 0:
			at = at.Commands()[below]
		case i == 0 && regexp.MustCompile(`^[a-z-]+$`).MatchString(word) && word != "help" && word != "completion":
			return []string{"slipway has no command " + word}
		}
	}
	return all
}

func (c *checker) call(words []string) (all []string) {
	takes, function := c.shared, ""
	for i := 0; i < len(words); i++ {
		word := words[i]
		name := flagName(word)
		switch {
		case strings.HasPrefix(word, "-") && name == "", name == "progress", name == "help", name == "mod": // dagger's own
		case name != "":
			isSwitch, has := takes[name]
			if !has {
				all = append(all, strings.TrimSpace("dagger call "+function)+" has no --"+name)
			}
			if !isSwitch && !strings.Contains(word, "=") {
				i++
			}
		case function != "": // of what the function returns
			return all
		case regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(word):
			if takes, function = c.module[word], word; takes == nil {
				return []string{"the module has no function " + word}
			}
		default: // FUNCTION
			return all
		}
	}
	return all
}

func TestWhatIsWrongWithACommand(t *testing.T) {
	c := newChecker(t)
	for line, want := range map[string]string{
		"$ slipway install --keep-cluster && slipway runs show ID --output json": "",
		"slipway toolchain --name a -- kubectl --context b":                      "",
		"slipway instal": "slipway has no command instal",
		"eval \"$(slipway env --deploymnt prod)\"":                "slipway env has no --deploymnt",
		"dagger call -s --lock FILE runs --show ID --format json": "",
		"dagger call report --run ID export --path report --wipe": "",
		"dagger call status --live export --path x":               "",
		"dagger call --platform a install":                        "dagger call has no --platform",
		"dagger call install --tls-keys a":                        "dagger call install has no --tls-keys",
		"dagger call instal":                                      "the module has no function instal",
		"make engine bundle PLATFORM=x":                           "",
		"$ make engines":                                          "make has no target engines",
	} {
		require.Equal(t, want, strings.Join(c.problems(line), "; "), line)
	}
}
