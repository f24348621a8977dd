package survey

import (
	"fmt"
	"strings"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// volatile notes the objects of a chart that each upgrade makes anew. The first rendering of
// the chart has succeeded.
func (v *surveyor) volatile(c chart, opts render.ChartOptions) {
	first, err := render.LoadChart(c.dir)
	if err != nil {
		v.badChart(c, err)
		return
	}
	second, err := render.LoadChart(c.dir)
	if err != nil {
		v.badChart(c, err)
		return
	}
	objects, err := render.VolatileObjects(first, second, opts)
	if err != nil {
		v.doubts = append(v.doubts, contract.Unread{Component: c.component, File: c.path, Err: fmt.Errorf("an upgrade cannot render the chart: %w", err)})
		return
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
}
