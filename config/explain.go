package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config/document"
)

// Setting is an effective value.
type Setting struct {
	Path   string `json:"path"`   // "global.name"
	Value  string `json:"value"`  // as JSON; text without quotes
	Origin string `json:"origin"` // "default", "line 3", "line 3, environment", "flag --name"
}

// Values returns the effective values as encoding/json has them; numbers are json.Number.
func (c *Config) Values() (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(c.Canonical()))
	dec.UseNumber()
	var all map[string]any
	if err := dec.Decode(&all); err != nil {
		return nil, fmt.Errorf("read the configuration back: %w", err)
	}
	return all, nil
}

// Explain returns all effective values of a loaded config with their origins, sorted by
// path.
func (c *Config) Explain() ([]Setting, error) {
	all, err := c.Values()
	if err != nil {
		return nil, err
	}
	var out []Setting
	walk("", all, func(path string, value any) {
		out = append(out, Setting{path, shown(value), c.origin(path)})
	})
	slices.SortStableFunc(out, func(a, b Setting) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// origin returns where the value at path came from.
func (c *Config) origin(path string) string {
	if flag, ok := c.flags[path]; ok {
		return "flag " + flag
	}
	if c.doc.Has(path) {
		origin := fmt.Sprintf("line %d", c.doc.Line(path))
		if slices.Contains(c.expanded, path) {
			origin += ", environment"
		}
		return origin
	}
	return "default"
}

// walk calls leaf for every value that is not a non-empty mapping.
func walk(path string, v any, leaf func(path string, value any)) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			leaf(path, v)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			walk(strings.TrimPrefix(path+"."+key, "."), v[key], leaf)
		}
	case []any:
		if len(v) == 0 || !slices.ContainsFunc(v, isMapping) {
			leaf(path, v)
			return
		}
		for i, item := range v {
			walk(fmt.Sprintf("%s[%d]", path, i), item, leaf)
		}
	default:
		leaf(path, v)
	}
}

func isMapping(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// shown formats a value on one line.
func shown(v any) string {
	text, ok := v.(string)
	if !ok {
		b, err := json.Marshal(v)
		if err != nil {
			return err.Error()
		}
		text = string(b)
	}
	if first, _, more := strings.Cut(strings.TrimRight(text, "\n"), "\n"); more {
		return document.Quote(first) + " …"
	}
	return text
}
