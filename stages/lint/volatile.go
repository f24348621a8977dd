package lint

import (
	"context"
	"fmt"
	"strings"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// volatile notes the objects of a chart that each upgrade makes anew. The first rendering of
// the chart has succeeded.
func (v *linter) volatile(ctx context.Context, c chart, opts render.ChartOptions) error {
	first, err := c.load(ctx)
	if err != nil {
		v.badChart(c, err)
		return ended(ctx, c.component, c.path, err)
	}
	second, err := c.load(ctx)
	if err != nil {
		v.badChart(c, err)
		return ended(ctx, c.component, c.path, err)
	}
	objects, err := render.VolatileObjects(ctx, first, second, opts)
	if err != nil {
		if err := ended(ctx, c.component, c.path, err); err != nil {
			return err
		}
		v.doubts = append(v.doubts, contract.Unread{Component: c.component, File: c.path, Err: fmt.Errorf("an upgrade cannot render the chart: %w", err)})
		return nil
	}
	for _, o := range objects {
		name := strings.TrimSpace(o.Kind + " " + o.Name)
		what := fmt.Errorf("the chart renders the %s anew each time; installs leave it as it is until the chart, its values or its images change", name)
		switch {
		case !o.Upgrade:
			what = fmt.Errorf("the chart renders the %s for an install and not for an upgrade; it is removed when the chart, its values or its images change", name)
		case !o.Install:
			what = fmt.Errorf("the chart renders the %s for an upgrade and not for an install; it is made when the chart, its values or its images change", name)
		}
		v.doubts = append(v.doubts, contract.Unread{Component: c.component, File: c.inRelease(o.File), Err: what})
	}
	return nil
}
