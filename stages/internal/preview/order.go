package preview

import (
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/stages/contract"
)

// sortAll brings the parts of a plan into an order of their own, and makes what is empty a
// list in JSON.
func sortAll(out *contract.Plan) {
	tidy(&out.PlannedChange)
	out.Objects = append([]contract.PlannedObject{}, out.Objects...)
	out.Applications = append([]contract.PlannedObject{}, out.Applications...)
	out.Jobs = append([]contract.PlannedJob{}, out.Jobs...)
	out.Destructive = append([]string{}, out.Destructive...)
	out.Unknown = append([]contract.PlannedUnknown{}, out.Unknown...)
	out.Refused = append([]contract.PlannedUnknown{}, out.Refused...)
	out.Later = append([]contract.PlannedUpgrade{}, out.Later...)
	for i := range out.Later {
		tidy(&out.Later[i].PlannedChange)
		out.Later[i].Unknown = append([]contract.PlannedUnknown{}, out.Later[i].Unknown...)
	}
	for _, all := range [][]contract.PlannedObject{out.Objects, out.Applications} {
		slices.SortStableFunc(all, func(a, b contract.PlannedObject) int { return strings.Compare(a.String(), b.String()) })
	}
	slices.SortFunc(out.Jobs, func(a, b contract.PlannedJob) int { return strings.Compare(a.Object, b.Object) })
	slices.Sort(out.Destructive)
	slices.SortFunc(out.Unknown, func(a, b contract.PlannedUnknown) int { return strings.Compare(a.What+a.Why, b.What+b.Why) })
}

// tidy does that for what a release brings. Migrations are in their order already.
func tidy(c *contract.PlannedChange) {
	c.Configuration = append([]contract.Difference{}, c.Configuration...)
	c.Settings = append([]string{}, c.Settings...)
	c.Components = append([]contract.PlannedComponent{}, c.Components...)
	c.Backups = append([]contract.PlannedBackup{}, c.Backups...)
	c.Migrations = append([]contract.PlannedMigration{}, c.Migrations...)
	slices.SortFunc(c.Backups, func(a, b contract.PlannedBackup) int { return strings.Compare(a.Data, b.Data) })
}
