package infrastructure

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/step"
)

// addons applies what a fresh cluster lacks and waits until it runs.
func addons(ctx context.Context, env *step.Env, in contract.AddonsInput) (contract.Addons, error) {
	objs, err := renderAddons(in)
	if err != nil {
		return contract.Addons{}, err
	}
	client, err := env.Connect()
	if err != nil {
		return contract.Addons{}, err
	}
	applied, err := client.Apply(ctx, objs, kube.ApplyOptions{})
	if err != nil {
		return contract.Addons{}, err
	}
	env.Progress("add-ons: %s", kube.Count(applied))
	workloads, err := readiness.WaitRollouts(ctx, client, objs)
	if err != nil {
		return contract.Addons{}, err
	}
	return contract.Addons{Applied: len(applied), Changed: kube.Altered(applied), Workloads: len(workloads)}, nil
}

// renderAddons renders the templates, in the order of their names.
func renderAddons(in contract.AddonsInput) ([]*unstructured.Unstructured, error) {
	var missing []string
	image := func(name string) string {
		if in.Images[name] == "" && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
		return in.Images[name]
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(in.Manifests)) {
		t, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{"image": image}).Parse(in.Manifests[name])
		if err == nil {
			out.WriteString("---\n")
			err = t.Execute(&out, in.Values)
		}
		if err != nil {
			return nil, badAddons(err)
		}
	}
	if len(missing) > 0 {
		return nil, badAddons(fmt.Errorf("there is no image %s", strings.Join(missing, ", ")))
	}
	objs, err := kube.Decode(out.Bytes())
	if err != nil {
		return nil, badAddons(err)
	}
	return objs, nil
}

func badAddons(err error) error {
	return &fault.Fault{
		Code: contract.CodeUnusable, Class: fault.Step, Op: "render the manifests of the cluster's add-ons",
		Fix: "build the bundle again: make bundle", Err: err,
	}
}
