package infrastructure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-exec/tfexec"
	tfjson "github.com/hashicorp/terraform-json"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/step"
)

// previewTerraform plans the provider's root without applying it. Its output is as it would be,
// where that is known before.
func (t toolchain) previewTerraform(ctx context.Context, env *step.Env, in contract.TerraformInput) (contract.Infrastructure, error) {
	var out contract.Infrastructure
	plan, told, err := t.plan(ctx, env, in)
	if err != nil {
		return out, err
	}
	dryrun.Tell(ctx, told)
	values := map[string]tfexec.OutputMeta{}
	if plan.PlannedValues != nil {
		for name, o := range plan.PlannedValues.Outputs {
			text, err := json.Marshal(o.Value)
			if err != nil {
				return out, fmt.Errorf("encode the output %s of Terraform: %w", name, err)
			}
			values[name] = tfexec.OutputMeta{Value: text}
		}
	}
	if out, err = outputs(values); err != nil {
		if names := unmade(plan); len(names) > 0 {
			return out, dryrun.Later("what Terraform has yet to make (%s)", strings.Join(names, ", "))
		}
		return out, dryrun.Later("the outputs of Terraform: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	out.TerraformSerial = told.Serial
	return out, nil
}

// previewTerraformDestroy plans the removal of what the root made.
func (t toolchain) previewTerraformDestroy(ctx context.Context, env *step.Env, in contract.TerraformInput) (contract.TerraformDestroyed, error) {
	state, err := currentState(ctx, env)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(state.Resources) == 0 {
		return contract.TerraformDestroyed{Serial: state.Serial}, nil
	}
	if err != nil {
		return contract.TerraformDestroyed{}, badState(err)
	}
	_, told, err := t.plan(ctx, env, in, tfexec.Destroy(true))
	if err != nil {
		return contract.TerraformDestroyed{}, err
	}
	dryrun.Tell(ctx, told)
	return contract.TerraformDestroyed{Serial: told.Serial, Changed: len(told.Resources) > 0}, nil
}

// plan has Terraform plan the root, and returns what it says, in its words and in ours.
func (t toolchain) plan(ctx context.Context, env *step.Env, in contract.TerraformInput, opts ...tfexec.PlanOption) (*tfjson.Plan, contract.PlannedTerraform, error) {
	var told contract.PlannedTerraform
	state, err := currentState(ctx, env)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, told, badState(err)
	}
	told.Serial, told.Lineage = state.Serial, state.Lineage
	tf, err := t.open(ctx, env, in)
	if err != nil {
		return nil, told, err
	}
	defer tf.remove()
	if _, err := tf.Plan(ctx, append([]tfexec.PlanOption{tfexec.Out(planFile)}, opts...)...); err != nil {
		return nil, told, badTerraform(CodeTerraform, "plan the Terraform root", err)
	}
	plan, err := tf.ShowPlanFile(ctx, planFile)
	if err != nil {
		return nil, told, badTerraform(CodeTerraform, "read the plan of the Terraform root", err)
	}
	for _, r := range plan.ResourceChanges {
		if action := actionOf(r.Change.Actions); action != "" {
			told.Resources = append(told.Resources, contract.PlannedResource{Address: r.Address, Action: action, Fields: attributes(r.Change)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(plan.OutputChanges)) {
		c := plan.OutputChanges[name]
		if !c.Actions.NoOp() && !c.Actions.Read() {
			told.Outputs = append(told.Outputs, contract.Difference{Path: name, Old: shown(c.Before, c.BeforeSensitive, nil), New: shown(c.After, c.AfterSensitive, c.AfterUnknown)})
		}
	}
	return plan, told, nil
}

// unmade are the outputs of a plan whose values are known once it has been applied, sorted.
func unmade(plan *tfjson.Plan) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(plan.OutputChanges)) {
		if isTrue(plan.OutputChanges[name].AfterUnknown) {
			names = append(names, name)
		}
	}
	return names
}

// actionOf is what Terraform would do with a resource, in one word; empty: nothing.
func actionOf(a tfjson.Actions) string {
	switch {
	case a.Create():
		return "create"
	case a.Update():
		return "update"
	case a.Delete():
		return "delete"
	case a.Replace():
		return "replace"
	}
	return ""
}

// attributes are those of a resource that change. What Terraform calls sensitive is not
// shown.
func attributes(c *tfjson.Change) []contract.Difference {
	before, _ := c.Before.(map[string]any)
	after, _ := c.After.(map[string]any)
	unknown, _ := c.AfterUnknown.(map[string]any)
	hiddenBefore, _ := c.BeforeSensitive.(map[string]any)
	hiddenAfter, _ := c.AfterSensitive.(map[string]any)
	all := map[string]bool{}
	for _, m := range []map[string]any{before, after, unknown} {
		for name := range m {
			all[name] = true
		}
	}
	var out []contract.Difference
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if reflect.DeepEqual(before[name], after[name]) && !isTrue(unknown[name]) {
			continue
		}
		d := contract.Difference{Path: name, Old: shown(before[name], hiddenBefore[name], nil), New: shown(after[name], hiddenAfter[name], unknown[name])}
		if d.Old != d.New || isTrue(hiddenAfter[name]) {
			out = append(out, d)
		}
	}
	return out
}

// shown is a value as it is shown; empty for none.
func shown(value, sensitive, unknown any) string {
	switch {
	case isTrue(sensitive):
		return "(sensitive)"
	case isTrue(unknown):
		return "(known after apply)"
	case value == nil:
		return ""
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// isTrue reports whether anything in a value is true: Terraform marks parts of values so.
func isTrue(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case map[string]any:
		for _, below := range v {
			if isTrue(below) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, isTrue)
	}
	return false
}

// previewRemoval tells what the deployment has in the cluster.
func previewRemoval(ctx context.Context, env *step.Env, in contract.InventoryInput) (contract.Inventory, error) {
	var out contract.Inventory
	if err := ask(ctx, env, contract.InventoryInput{SkipUnreachable: in.SkipUnreachable, Definitions: in.Definitions}, &out); err != nil {
		return out, err
	}
	if _, err := os.Stat(env.Kubeconfig); out.Unreachable != "" && err == nil {
		return out, dryrun.Later("what is in the cluster, which does not answer (%s)", out.Unreachable)
	}
	dryrun.Tell(ctx, out)
	return out, nil
}

// previewRemove leaves to the inventory what a removal takes.
func previewRemove(context.Context, *step.Env, contract.RemoveInput) (contract.Removed, error) {
	return contract.Removed{}, nil
}
