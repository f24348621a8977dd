// Package installed keeps in a cluster which release of the platform it has, and decides
// which ones may be installed over it.
package installed

import (
	"context"
	"fmt"
	"strings"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// The codes of this package's faults.
const (
	// CodeNotOver: a release cannot be installed over the one that is installed.
	CodeNotOver fault.Code = "UPG-001"
	// CodeUnfinished: the last upgrade has not come to its end.
	CodeUnfinished fault.Code = "UPG-002"
)

// name is that of the ConfigMap in kube.SystemNamespace; its keys are those of Record.
const name = "slipway-release"

const (
	platformKey = "platform"
	versionKey  = "version"
	towardKey   = "toward"
)

// Record says which release of which platform a cluster has. The zero value is that of a
// cluster with none.
type Record struct {
	Platform string // its name
	Version  string // that was installed to the end; empty: none was yet
	// Toward is the version to which a run brings it, or has begun to bring it; empty if
	// that is Version.
	Toward string
}

// Read returns the record of a cluster.
func Read(ctx context.Context, c *kube.Client) (Record, error) {
	data, err := c.Notes(ctx, name, "which release is installed")
	return Record{Platform: data[platformKey], Version: data[versionKey], Toward: data[towardKey]}, err
}

// Begin notes that a run brings the cluster to a release.
func (rec Record) Begin(ctx context.Context, c *kube.Client, deployment string, r *platform.Release) error {
	next := Record{Platform: r.Name, Version: rec.Version, Toward: r.Version}
	if next.Toward == next.Version {
		next.Toward = ""
	}
	return next.keep(ctx, c, deployment)
}

// End notes that the cluster has a release.
func End(ctx context.Context, c *kube.Client, deployment string, r *platform.Release) error {
	return Record{Platform: r.Name, Version: r.Version}.keep(ctx, c, deployment)
}

func (rec Record) keep(ctx context.Context, c *kube.Client, deployment string) error {
	data := map[string]string{platformKey: rec.Platform, versionKey: rec.Version, towardKey: rec.Toward}
	return c.KeepNotes(ctx, deployment, name, data)
}

// Check returns a fault unless a release may be installed over what the cluster has.
// An upgrade to the release that it has is one, too; an install of that is not.
func (rec Record) Check(r *platform.Release, upgrade bool) error {
	f := &fault.Fault{Code: CodeNotOver, Class: fault.Usage, Op: "install release " + r.Version + " of " + r.Name}
	switch {
	case rec.Platform == "":
		return nil
	case rec.Platform != r.Name:
		f.Err = fmt.Errorf("the deployment has another platform, %s", rec.Platform)
		f.Fix = "install it as a deployment of its own: --name NAME"
		return f
	case rec.Toward != "" && rec.Version != "" && rec.Toward != r.Version && !r.Follows(rec.Toward):
		f.Code = CodeUnfinished
		f.Err = fmt.Errorf("the upgrade from %s to %s has begun and is not finished", rec.Version, rec.Toward)
		f.Fix = "bring it to its end first: slipway upgrade --to " + rec.Toward
		return f
	case rec.Version == r.Version && rec.Toward == "" && upgrade:
		return platform.Same(r.Version)
	case rec.Version == "" || rec.Version == r.Version || rec.Toward == r.Version || r.Follows(rec.Version):
		return nil
	case platform.Older(r.Version, rec.Version):
		f.Err = fmt.Errorf("release %s is installed, and an older one is not installed over it", rec.Version)
		f.Fix = "name release " + rec.Version + " or a newer one: platform.release in the configuration, or --platform"
		return f
	}
	f.Err = fmt.Errorf("release %s is installed, and %s says of it that it cannot be upgraded (upgradableFrom: %s)",
		rec.Version, r.Version, orNone(r.UpgradableFrom))
	f.Fix = "upgrade to a release between first: slipway upgrade --to VERSION; in a release of your own, name " + rec.Version + " under upgradableFrom if it can be installed over that"
	return f
}

func orNone(versions []string) string {
	if len(versions) == 0 {
		return "none"
	}
	return strings.Join(versions, ", ")
}
