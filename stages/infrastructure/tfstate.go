package infrastructure

import (
	"encoding/json"
	"fmt"

	"github.com/slipway-sh/slipway/bounded"
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

// readState reads a state file.
func readState(path string) (tfstate, error) {
	b, err := bounded.File(path, bounded.Generated)
	if err != nil {
		return tfstate{}, err
	}
	return parseState(path, b)
}

// parseState decodes a state that was read from somewhere. Without any content it is empty:
// Terraform's backend for files made such a file when it took its lock for the first time.
func parseState(path string, b []byte) (tfstate, error) {
	var s tfstate
	if len(b) == 0 {
		return s, nil
	}
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
