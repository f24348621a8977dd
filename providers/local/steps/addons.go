// Package steps is the code of provider local's own steps.
package steps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"text/template"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// CodeAddons: the manifests of name service and storage of the local cluster
// cannot be made.
const CodeAddons fault.Code = "LOC-001"

// workloads are what the manifests roll out, in kube-system.
var workloads = []string{"coredns", "local-path-provisioner"} //nolint:gochecknoglobals // a constant list

// Register adds the code of the provider's steps to r.
func Register(r *step.Registry) {
	step.RegisterRepeatable(r, contract.AddonsStep(), addons)
}

// addons applies name service and storage and waits until they run.
func addons(ctx context.Context, env *step.Env, in contract.ClusterInput) (contract.Addons, error) {
	manifest, err := Manifest(in)
	if err != nil {
		return contract.Addons{}, err
	}
	client, err := kube.Connect(env.Kubeconfig, env.Progress)
	if err != nil {
		return contract.Addons{}, err
	}
	applied, err := client.ApplyYAML(ctx, manifest, kube.ApplyOptions{Force: true})
	if err != nil {
		return contract.Addons{}, err
	}
	env.Progress("name service and storage: %s", kube.Count(applied))
	errs := make(chan error, len(workloads))
	for _, name := range workloads {
		go func() { errs <- client.WaitRollout(ctx, "Deployment", "kube-system", name) }()
	}
	var all []error
	for range workloads {
		all = append(all, <-errs)
	}
	if err := errors.Join(all...); err != nil {
		return contract.Addons{}, err
	}
	changed := 0
	for _, a := range applied {
		if a.Change != kube.Unchanged {
			changed++
		}
	}
	return contract.Addons{Applied: len(applied), Changed: changed, Workloads: len(workloads)}, nil
}

// Manifest renders the manifests for a deployment.
func Manifest(in contract.ClusterInput) ([]byte, error) {
	values := map[string]map[string]string{
		"coredns.yaml": {
			"Image":   in.Common.Images["coredns"],
			"Address": local.DNSAddress, "Domain": local.DNSDomain,
		},
		"storage.yaml": {
			"Image":  in.Common.Images["local-path-provisioner"],
			"Helper": in.Common.Images["busybox"],
			"Class":  in.Infrastructure.StorageClass, "Path": local.VolumesPath,
		},
	}
	var missing []string
	for _, name := range []string{"coredns", "local-path-provisioner", "busybox"} {
		if in.Common.Images[name] == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, bad(fmt.Errorf("there is no image %s", strings.Join(missing, ", ")))
	}
	names, err := fs.Glob(local.AddonManifests(), "addons/*.yaml")
	if err != nil {
		return nil, bad(err)
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(slices.Values(names)) {
		t, err := template.New(strings.TrimPrefix(name, "addons/")).Option("missingkey=error").ParseFS(local.AddonManifests(), name)
		if err != nil {
			return nil, bad(err)
		}
		out.WriteString("---\n")
		if err := t.Execute(&out, values[t.Name()]); err != nil {
			return nil, bad(err)
		}
	}
	return out.Bytes(), nil
}

func bad(err error) error {
	return &fault.Fault{
		Code: CodeAddons, Class: fault.Step, Op: "render the manifests of name service and storage",
		Fix: "build the bundle again: make bundle", Err: err,
	}
}
