package removal

import (
	"cmp"
	"context"
	"slices"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// The note that says how a deployment is removed, and its key: a destroy has no release at hand.
const (
	recordName = "slipway-removal"
	recordKey  = "removal.json"
)

// Record is how a deployment is removed.
type Record struct {
	Remove     platform.Remove `json:"remove"`
	Components []Component     `json:"components"` // in the order of their removal
	// Argo is the namespace of Argo CD, in which whoever may write may do anything; empty: the
	// platform has no Argo CD.
	Argo string `json:"argo,omitempty"`
	// Orphans are Applications, "namespace/name", that the platform's ApplicationSets had made, which
	// a removal has deleted: the name of the set. A removal that is killed then goes on in the same order.
	Orphans map[string]string `json:"orphans,omitempty"`
}

// Component is one that is, or was, installed.
type Component struct {
	Name string `json:"name"`
	Apps bool   `json:"apps,omitempty"` // all Applications are removed in its place
}

// RecordOf is the record of a release. Applications go before what Argo CD has adopted: it
// would make again what is missing.
func RecordOf(r *platform.Release) Record {
	out := Record{Remove: r.Removal()}
	if engine := r.Engine(); engine != nil {
		out.Argo = engine.Namespace
	}
	apps := false
	for _, c := range r.RemovalOrder() {
		adopted := c.Kind == platform.Adopted
		if adopted && !apps {
			out.Components = append(out.Components, Component{Apps: true})
		}
		apps = apps || adopted || !c.Installed()
		out.Components = append(out.Components, Component{Name: c.Name, Apps: !c.Installed()})
	}
	return out
}

// Following is rec after an earlier one: a component that only that one has goes first,
// since nothing comes after it any more.
func (rec Record) Following(earlier Record) Record {
	dropped := slices.DeleteFunc(slices.Clone(earlier.Components), func(c Component) bool { return slices.ContainsFunc(rec.Components, c.same) })
	rec.Components = append(dropped, rec.Components...)
	rec.Argo, rec.Orphans = cmp.Or(rec.Argo, earlier.Argo), earlier.Orphans
	return rec
}

// same tells whether two components are one, wherever it is.
func (c Component) same(o Component) bool {
	return c.Apps && o.Apps || c.Apps == o.Apps && c.Name == o.Name
}

// Read returns the record of a deployment in a cluster. Without one, or with another deployment's,
// it is that of a release with no components, and found is false.
func Read(ctx context.Context, c *kube.Client, deployment string) (rec Record, found bool, err error) {
	if found, err = c.NoteOf(ctx, deployment, recordName, recordKey, &rec); !found {
		rec.Remove.SetDefaults()
	}
	return rec, found, err
}

// Write keeps the record in the cluster.
func (rec Record) Write(ctx context.Context, c *kube.Client, deployment string) error {
	return c.KeepNote(ctx, deployment, recordName, recordKey, rec)
}
