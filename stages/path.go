package stages

import (
	"cmp"
	"slices"
	"strings"

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
func (h Held) on() (on []platform.Component, off []string, err error) {
	r := h.Release
	if h.Config.Git.URL != "" {
		r = r.ForRepository()
	}
	off, err = r.Off(h.Config.Choices())
	for _, c := range r.Components {
		if !slices.Contains(off, c.Name) {
			on = append(on, c)
		}
	}
	return on, off, err
}

func named(all []platform.Component, name string) bool {
	return slices.ContainsFunc(all, func(c platform.Component) bool { return c.Name == name })
}

// ComponentsBetween are the components that one release adds to another and removes.
func ComponentsBetween(was, is Held) ([]contract.PlannedComponent, error) {
	before, _, err := was.on()
	if err != nil {
		return nil, err
	}
	after, _, err := is.on()
	if err != nil {
		return nil, err
	}
	var out []contract.PlannedComponent
	for _, c := range after {
		if !named(before, c.Name) {
			out = append(out, contract.PlannedComponent{Action: contract.PlanAdd, Name: c.Name, Kind: string(c.Kind)})
		}
	}
	for _, c := range before {
		if !named(after, c.Name) {
			out = append(out, contract.PlannedComponent{Action: contract.PlanRemove, Name: c.Name, Kind: string(c.Kind)})
		}
	}
	slices.SortFunc(out, func(a, b contract.PlannedComponent) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// UpgradeBetween is what an upgrade from one release to another does, as far as the releases
// say it; was need not be installed yet.
func UpgradeBetween(was, is Held, style string) (contract.LaterUpgrade, error) {
	before, _, err := was.on()
	if err != nil {
		return contract.LaterUpgrade{}, err
	}
	_, off, err := is.on()
	if err != nil {
		return contract.LaterUpgrade{}, err
	}
	out := contract.LaterUpgrade{Config: is.Config.Canonical()}
	out.Platform, out.From, out.To, out.ReadAs = is.Release.Name, was.Release.Version, is.Release.Version, is.Config.Digest()
	out.Style = cmp.Or(style, contract.Graceful)
	if out.Components, err = ComponentsBetween(was, is); err != nil {
		return out, err
	}
	var data []string
	for _, name := range is.Release.DataOn(off) {
		d, _ := is.Release.DataNamed(name)
		c, _ := is.Release.Component(d.Component)
		if !named(before, c.Name) {
			out.Unknown = append(out.Unknown, contract.PlannedUnknown{What: "data " + name, Why: "its component is not one of release " + out.From + ": whether there is any to back up and migrate"})
			continue
		}
		data = append(data, name)
		out.Backups = append(out.Backups, contract.PlannedBackup{Data: name})
	}
	for _, when := range []platform.When{platform.Before, platform.After} {
		for _, m := range is.Release.MigrationsFrom(out.From, when, data) {
			planned := contract.PlannedMigration{Name: m.Name, Data: m.Data, When: string(when), Undo: m.Undo != nil}
			if d, _ := is.Release.DataNamed(m.Data); out.Style == contract.InPlace {
				planned.Stops = d.Users
			}
			out.Migrations = append(out.Migrations, planned)
		}
	}
	out.Unknown = append(out.Unknown, contract.PlannedUnknown{
		What: "objects, images, Jobs, files and Applications", Why: "they are compared with what release " + out.From + " makes: slipway plan shows it then",
	})
	return out, nil
}
