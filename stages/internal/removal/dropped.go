package removal

import (
	"context"
	"slices"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// Dropped removes those of all that are not installed any more, but for objects that one
// that is installed has now. It returns the components and what it deleted of them.
func (r *Remover) Dropped(ctx context.Context, all []Component, installed []string) (components, objects []string, err error) {
	var stay []kube.Member
	var dropped []Component
	for _, c := range all {
		if c.Apps || slices.Contains(installed, c.Name) {
			continue
		}
		there, err := r.has(ctx, c)
		if err != nil {
			return nil, nil, err
		}
		if there {
			dropped = append(dropped, c)
		}
	}
	if len(dropped) == 0 {
		return nil, nil, nil
	}
	for _, c := range all {
		if c.Apps || !slices.Contains(installed, c.Name) {
			continue
		}
		members, err := r.members(ctx, c)
		if err != nil {
			return nil, nil, err
		}
		stay = append(stay, members...)
		chart, err := r.release(ctx, c, nil)
		if err != nil {
			return nil, nil, err
		}
		if chart != nil {
			stay = append(stay, chart.members...)
		}
	}
	for _, c := range dropped {
		deleted, err := r.Component(ctx, c, func(m kube.Member) bool { return slices.ContainsFunc(stay, m.Same) })
		if err != nil {
			return components, objects, err
		}
		components, objects = append(components, c.Name), append(objects, deleted...)
	}
	return components, objects, nil
}

// has reports whether there is something of a component.
func (r *Remover) has(ctx context.Context, c Component) (bool, error) {
	members, err := r.members(ctx, c)
	if err != nil || len(members) > 0 {
		return len(members) > 0, err
	}
	chart, err := r.release(ctx, c, nil)
	return chart != nil, err
}
