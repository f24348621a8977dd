package infrastructure

import (
	"encoding/json"
	"fmt"
)

// tfstate is what this package reads of a Terraform state file, version 4.
type tfstate struct {
	Version   int          `json:"version"`
	Serial    int64        `json:"serial"`
	Lineage   string       `json:"lineage"`
	Resources []tfresource `json:"resources"`
}

type tfresource struct {
	Module string `json:"module"`
	Mode   string `json:"mode"`
	Type   string `json:"type"`
	Name   string `json:"name"`
}

// parseState decodes a state that was read from somewhere.
func parseState(path string, b []byte) (tfstate, error) {
	var s tfstate
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	if s.Version != 4 {
		return s, fmt.Errorf("%s: version %d of the state is unknown", path, s.Version)
	}
	return s, nil
}

// addresses are the resources' addresses.
func (s tfstate) addresses() []string {
	var out []string
	for _, r := range s.Resources {
		a := r.Type + "." + r.Name
		if r.Mode == "data" {
			a = "data." + a
		}
		if r.Module != "" {
			a = r.Module + "." + a
		}
		out = append(out, a)
	}
	return out
}
