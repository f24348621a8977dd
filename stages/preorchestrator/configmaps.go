package preorchestrator

import (
	"context"
	"fmt"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

func runConfigMaps(ctx context.Context, env *step.Env, in contract.ConfigMapsInput) (contract.ConfigMaps, error) {
	r, c, err := env.Open()
	if err != nil {
		return contract.ConfigMaps{}, err
	}
	var out contract.ConfigMaps
	for _, m := range r.ConfigMaps {
		name := m.Namespace + "/" + m.Name
		out.Names = append(out.Names, name)
		data, err := m.Filled(in.Fill)
		if err != nil {
			return out, fmt.Errorf("make configmap %s: %w", name, err)
		}
		changed, err := writeConfigMap(ctx, c, m.Namespace, m.Name, kube.Labels(env.Deployment), data)
		if err != nil {
			return out, err
		}
		if changed {
			out.Changed++
		}
	}
	env.Progress("%s, %d of them changed", counted(len(out.Names), "configmap"), out.Changed)
	return out, nil
}
