package render

import (
	"encoding/json"
	"fmt"
	"io/fs"

	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Values are what the chart of a component gets: the release's files and values, then the
// user's.
func Values(release fs.FS, c platform.Component, in contract.ComponentInput) (map[string]any, error) {
	values, err := platform.FillValues(c.Values, in.Fill)
	if err != nil {
		return nil, err
	}
	var own map[string]any
	if in.Values != nil {
		if err := json.Unmarshal(in.Values, &own); err != nil {
			return nil, fmt.Errorf("read the values of the configuration: %w", err)
		}
	}
	values = chartutil.CoalesceTables(own, values) // the first one wins
	for n := len(c.ValuesFiles) - 1; n >= 0; n-- {
		name := platform.Fill(c.ValuesFiles[n], map[string]string{platform.FillScale: fmt.Sprint(in.Fill[platform.FillScale])})
		text, err := fs.ReadFile(release, name)
		if err != nil {
			return nil, err
		}
		var file map[string]any
		if err := yaml.Unmarshal(text, &file); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		values = chartutil.CoalesceTables(values, file)
	}
	return values, nil
}
