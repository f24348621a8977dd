package diagnosis

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// queryNode queries the health of the cluster's node and describes it in a clause.
func queryNode(ctx context.Context, client *kube.Client, url string) string {
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	_, text, err := client.AskNode(ctx, url)
	if err != nil {
		return fmt.Sprintf("its node does not answer at %s either: %s", url, reason(err))
	}
	return readHealth(text)
}

// readHealth summarises the health that a node of Slipway reports; see containers/node.
func readHealth(text string) string {
	type parts map[string]struct {
		State    string `json:"state"`
		Restarts int    `json:"restarts"`
		Detail   string `json:"detail"`
	}
	var h struct {
		Parts      parts `json:"parts"`
		Components parts `json:"components"`
	}
	if err := json.Unmarshal([]byte(text), &h); err != nil || h.Parts == nil {
		return "its node says: " + kube.OneLine(text)
	}
	var bad []string
	for _, all := range []parts{h.Components, h.Parts} { // parts wait for components
		for _, name := range slices.Sorted(maps.Keys(all)) {
			p := all[name]
			if (p.State == "running" || p.State == "ready") && p.Restarts == 0 {
				continue
			}
			s := name + " is " + p.State
			if p.Restarts > 0 {
				s += fmt.Sprintf(", restarted %d times", p.Restarts)
			}
			if p.Detail != "" {
				s += " (" + kube.OneLine(p.Detail) + ")"
			}
			bad = append(bad, s)
		}
	}
	if len(bad) == 0 {
		return "its node says that it is ready"
	}
	return "its node says: " + strings.Join(bad, "; ")
}
