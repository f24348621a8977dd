package infrastructure

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-exec/tfexec"
	tfjson "github.com/hashicorp/terraform-json"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/step"
)

// planTerraform plans the provider's root without applying it. Its output is as it would be,
// where that is known before.
func planTerraform(ctx context.Context, env *step.Env, in contract.TerraformInput) (contract.Infrastructure, error) {
	var out contract.Infrastructure
	planned, state, _, err := terraformPlan(ctx, env, in)
	if err != nil {
		return out, err
	}
	values := map[string]tfexec.OutputMeta{}
	if planned.PlannedValues != nil {
		for name, o := range planned.PlannedValues.Outputs {
			text, err := json.Marshal(o.Value)
			if err != nil {
				return out, fmt.Errorf("encode the output %s of Terraform: %w", name, err)
			}
			values[name] = tfexec.OutputMeta{Value: text}
		}
	}
	if out, err = outputs(values); err != nil {
		return out, plan.Later("the outputs of Terraform: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	out.TerraformSerial = state.Serial
	return out, nil
}

func planTerraformDestroy(ctx context.Context, env *step.Env, in contract.TerraformInput) (contract.TerraformDestroyed, error) {
	state, err := currentState(ctx, env)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(state.Resources) == 0 {
		return contract.TerraformDestroyed{Serial: state.Serial}, nil
	}
	if err != nil {
		return contract.TerraformDestroyed{}, badState(err)
	}
	_, _, changes, err := terraformPlan(ctx, env, in, tfexec.Destroy(true))
	return contract.TerraformDestroyed{Serial: state.Serial, Changed: changes}, err
}

// terraformPlan has Terraform plan the root, and tells env what would change. It returns what Terraform says,
// the state that this was found with, and whether a resource would change.
func terraformPlan(ctx context.Context, env *step.Env, in contract.TerraformInput, opts ...tfexec.PlanOption) (planned *tfjson.Plan, state tfstate, changes bool, err error) {
	if state, err = currentState(ctx, env); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, state, false, badState(err)
	}
	tf, err := openRoot(ctx, env, in)
	if err != nil {
		return nil, state, false, err
	}
	defer tf.remove()
	if _, err := tf.Plan(ctx, append([]tfexec.PlanOption{tfexec.Out(planFile)}, opts...)...); err != nil {
		return nil, state, false, badTerraform(CodeTerraform, "plan the Terraform root", err)
	}
	if planned, err = tf.ShowPlanFile(ctx, planFile); err != nil {
		return nil, state, false, badTerraform(CodeTerraform, "read the plan of the Terraform root", err)
	}
	env.Plan.Note(contract.PlanBasis{Terraform: fmt.Sprintf("%s %d", state.Lineage, state.Serial)})
	for _, r := range planned.ResourceChanges {
		c := contract.PlannedChange{Of: contract.PlanTerraform, Action: actionOf(r.Change.Actions), Name: r.Address, Fields: attributes(r.Change)}
		switch c.Action {
		case "":
			continue
		case contract.PlanRemove, contract.PlanReplace:
			c.Destroys = "Terraform would " + c.Action + " " + r.Address
		}
		changes = true
		env.Plan.Note(c)
	}
	for _, name := range slices.Sorted(maps.Keys(planned.OutputChanges)) {
		if c := planned.OutputChanges[name]; !c.Actions.NoOp() && !c.Actions.Read() {
			note := cmp.Or(shown(c.Before, c.BeforeSensitive, nil), "none") + " → " + cmp.Or(shown(c.After, c.AfterSensitive, c.AfterUnknown), "none")
			env.Plan.Note(contract.PlannedChange{Of: contract.PlanOutputs, Action: contract.PlanChange, Name: name, Note: note})
		}
	}
	return planned, state, changes, nil
}

// actionOf is what Terraform would do with a resource, in one word; empty: nothing.
func actionOf(a tfjson.Actions) string {
	switch {
	case a.Create():
		return contract.PlanAdd
	case a.Update():
		return contract.PlanChange
	case a.Delete():
		return contract.PlanRemove
	case a.Replace():
		return contract.PlanReplace
	}
	return ""
}

// attributes are those of a resource that change, without values that Terraform calls sensitive.
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
