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

// nodeHealth is the health that a node of Slipway reports; see containers/node.
type nodeHealth struct {
	Ready      *bool               `json:"ready"`
	Parts      map[string]nodePart `json:"parts"`
	Components map[string]nodePart `json:"components"`
}

type nodePart struct {
	State    string `json:"state"`
	Restarts int    `json:"restarts"`
	Detail   string `json:"detail"`
}

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

// readHealth summarises the node's health.
func readHealth(text string) string {
	var h nodeHealth
	if err := json.Unmarshal([]byte(text), &h); err != nil || h.Ready == nil {
		return "its node says: " + kube.OneLine(text)
	}
	var bad []string
	add := func(parts map[string]nodePart, good string) {
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			p := parts[name]
			if p.State == good && p.Restarts == 0 {
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
	// Components first, because parts wait for them.
	add(h.Components, "running")
	if !*h.Ready {
		add(h.Parts, "ready")
	}
	if len(bad) == 0 {
		return "its node says that it is ready"
	}
	return "its node says: " + strings.Join(bad, "; ")
}
