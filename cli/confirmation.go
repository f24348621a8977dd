package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/module"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// codeNotAgreed: a release asks before it is installed, and there is nobody to ask.
const codeNotAgreed fault.Code = "PLT-031"

// approvalText is what a release has people agree to before an install; empty if it does not
// ask.
func approvalText(c *conductor.Options) (string, error) {
	r, cfg := c.Release, c.Config
	off, err := r.Off(cfg.Choices())
	if err != nil {
		return "", err
	}
	on, err := r.On(off)
	if err != nil {
		return "", err
	}
	place := providers.PlaceOf(c.Provider, conductor.DeploymentOf(cfg))
	data := platform.ApprovalData{
		Platform: r.Name, Version: r.Version, Deployment: cfg.Global.Name, Domain: cfg.Global.Domain, Scale: cfg.Profile().Name(),
		Provider: cfg.Provider, Cluster: place.Cluster, Region: place.Region, Settings: cfg.Platform.Settings,
	}
	for _, component := range on {
		data.Components = append(data.Components, component.Name)
	}
	return r.Approve(data)
}

// agree shows what the release has people agree to, and asks. It reports whether the install is
// to go on: also where the release does not ask, or the command line has answered; what is
// answered on the terminal is told to note. A function of the module asks nobody.
func (o *installOptions) agree(ctx context.Context, io console.Streams, note func(*report.Approval)) (bool, error) {
	if o.what == "" || o.approval.digest != "" || o.approval.yes || module.Active() {
		return true, nil
	}
	if !onTerminal(io) {
		return false, &fault.Fault{
			Code: codeNotAgreed, Class: fault.Usage, Op: "install the platform", Err: errors.New("the release asks before anything is made, and there is no terminal to ask on:\n" + o.what),
			Fix: "answer on the command line: slipway install --yes, or --approve with the digest of a plan",
		}
	}
	ctx, release := console.UntilInterrupt(ctx, io.Stop, console.Interrupted("ask", "run the same command again"))
	defer release()
	io.Err.End()
	fmt.Fprintf(io.Text(), "%s\n\n", o.what)
	said, err := consent(ctx, io, "Install it? [y/N] ")
	switch {
	case err != nil:
		return false, err
	case said == nil:
		fmt.Fprint(io.Text(), nothingChanged)
		return false, nil
	}
	note(said)
	return true, nil
}
