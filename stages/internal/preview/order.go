package preview

import (
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/stages/contract"
)

// sortAll brings the parts of a plan into an order of their own, and makes what is empty a
// list in JSON.
func sortAll(out *contract.Plan) {
	out.Configuration = append([]contract.Difference{}, out.Configuration...)
	out.Components = append([]contract.PlannedComponent{}, out.Components...)
	out.Backups = append([]contract.PlannedBackup{}, out.Backups...)
	out.Migrations = append([]contract.PlannedMigration{}, out.Migrations...) // in their order already
	out.Objects = append([]contract.PlannedObject{}, out.Objects...)
	out.Applications = append([]contract.PlannedObject{}, out.Applications...)
	out.Jobs = append([]contract.PlannedJob{}, out.Jobs...)
	out.Destructive = append([]string{}, out.Destructive...)
	out.Unknown = append([]contract.PlannedUnknown{}, out.Unknown...)
	out.Refused = append([]contract.PlannedUnknown{}, out.Refused...)
	out.Later = append([]string{}, out.Later...)
	slices.SortFunc(out.Backups, func(a, b contract.PlannedBackup) int { return strings.Compare(a.Data, b.Data) })
	for _, all := range [][]contract.PlannedObject{out.Objects, out.Applications} {
		slices.SortStableFunc(all, func(a, b contract.PlannedObject) int { return strings.Compare(a.String(), b.String()) })
	}
	slices.SortFunc(out.Jobs, func(a, b contract.PlannedJob) int { return strings.Compare(a.Object, b.Object) })
	slices.Sort(out.Destructive)
	slices.SortFunc(out.Unknown, func(a, b contract.PlannedUnknown) int { return strings.Compare(a.What+a.Why, b.What+b.Why) })
}
