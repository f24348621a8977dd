package stages

import (
	"slices"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Held is a release with the configuration that it is installed with.
type Held struct {
	Release *platform.Release
	Config  *config.Config
}

// on are the components that are not off.
func (h Held) on() (on []platform.Component, err error) {
	r := h.Release
	if h.Config.Git.URL != "" {
		r = r.ForRepository()
	}
	off, err := r.Off(h.Config.Choices())
	for _, c := range r.Components {
		if !slices.Contains(off, c.Name) {
			on = append(on, c)
		}
	}
	return on, err
}

func named(all []platform.Component, name string) bool {
	return slices.ContainsFunc(all, func(c platform.Component) bool { return c.Name == name })
}

func planned(action string, c platform.Component) contract.PlannedChange {
	return contract.PlannedChange{Of: contract.PlanComponents, Action: action, Name: c.Name, Note: string(c.Kind)}
}

// ComponentsBetween are the components that one release adds to another and removes.
func ComponentsBetween(was, is Held) ([]contract.PlannedChange, error) {
	before, err := was.on()
	if err != nil {
		return nil, err
	}
	after, err := is.on()
	if err != nil {
		return nil, err
	}
	var out []contract.PlannedChange
	for _, c := range after {
		if !named(before, c.Name) {
			out = append(out, planned(contract.PlanAdd, c))
		}
	}
	for _, c := range before {
		if !named(after, c.Name) {
			out = append(out, planned(contract.PlanRemove, c))
		}
	}
	return out, nil
}
