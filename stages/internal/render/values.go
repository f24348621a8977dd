package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Values are what the chart of a component gets: the release's files and values, then the
// user's. A null among them removes what is before it, and the chart's own default.
func Values(release fs.FS, c platform.Component, in contract.ComponentInput) (map[string]any, error) {
	values := map[string]any{}
	for _, name := range c.ValuesFiles {
		name := platform.Fill(name, map[string]string{platform.FillScale: fmt.Sprint(in.Fill[platform.FillScale])})
		text, err := ReadFile(release, name)
		if err != nil {
			return nil, err
		}
		file, err := ParseValues(text)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		values = Over(values, file)
	}
	own, err := platform.FillValues(c.Values, in.Fill)
	if err != nil {
		return nil, err
	}
	values = Over(values, own)
	if in.Values == nil {
		return values, nil
	}
	var users map[string]any
	if err := json.Unmarshal(in.Values, &users); err != nil {
		return nil, fmt.Errorf("read the values of the configuration: %w", err)
	}
	return Over(values, users), nil
}

// ParseValues reads a file with values of a chart. See document.Values.
func ParseValues(text []byte) (map[string]any, error) {
	values, problems := document.Values(text)
	if len(problems) > 0 {
		return nil, errors.New(problems[0].String())
	}
	return values, nil
}

// Over lays values over others, as Helm does with one file of values after another: mappings are
// merged, and anything else replaces what is there, null too.
func Over(base, values map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]any{}
	}
	for key, v := range values {
		from, isMapping := out[key].(map[string]any)
		to, both := v.(map[string]any)
		if isMapping && both {
			v = Over(from, to)
		}
		out[key] = v
	}
	return out
}
