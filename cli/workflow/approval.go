package workflow

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

// approval is how the user allows a workflow to change something.
type approval struct {
	digest string
	yes    bool
	answer *report.Approval // the user's answer on a terminal; nil: none yet
}

// record is the approval for the run's record; nil: there is none yet.
func (a *approval) record() *report.Approval {
	switch {
	case a.answer != nil:
		return a.answer
	case a.digest != "":
		return &report.Approval{How: report.ByDigest, Digest: a.digest, Answered: time.Now().UTC()}
	case a.yes:
		return &report.Approval{How: report.ByYes, Answered: time.Now().UTC()}
	}
	return nil
}

func (a *approval) addFlags(set *pflag.FlagSet) {
	set.StringVar(&a.digest, "approve", "", "do exactly what the plan with this digest says, or nothing")
	set.BoolVarP(&a.yes, "yes", "y", false, "do not ask for confirmation before changing anything")
	usage.Group(set, usage.Run, "approve", "yes")
}

// checkYes rejects a command that removes something if there is neither a flag nor a terminal to approve it.
func (a *approval) checkYes(io console.Streams, command string) error {
	if a.yes || a.digest != "" || io.Interactive() {
		return nil
	}
	return usage.Errorf("there is no terminal to ask on: give --yes to %s without a question, or --approve with the digest of a plan", command)
}

func (a *approval) check() error {
	if a.digest != "" && !bundle.IsDigest(a.digest) {
		return usage.Errorf("--approve is %q; give the digest at the end of its plan, sha256: and 64 digits", a.digest)
	}
	return nil
}

// nothingChanged is printed after a "no".
const nothingChanged = "Nothing was changed.\n"

// ask shows the plan of w on a terminal and asks whether to carry it out. It reports whether to continue.
func (a *approval) ask(ctx context.Context, io console.Streams, d *deployment.Deployment, w stages.Workflow) (bool, error) {
	if a.digest != "" || a.yes || !io.Interactive() {
		return true, nil
	}
	ctx, release := console.UntilInterrupt(ctx, io.Stop, console.Interrupted("make a plan", "run the same command again"))
	defer release()
	io.Err.Message("looking what " + w.Name + " would do")
	plan, err := d.Plan(ctx, w)
	switch {
	case err != nil && ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
		return false, err
	case plan.Empty():
		return true, refusal(plan)
	}
	io.Err.End()
	if err := cmp.Or(briefly(io, plan), refusal(plan)); err != nil {
		return false, err
	}
	said, err := consent(ctx, io, "ask", fmt.Sprintf("%s deployment %s? [y/N] ", strings.ToUpper(w.Name[:1])+w.Name[1:], d.Config.Global.Name))
	if err != nil || said == nil {
		return false, err
	}
	said.Digest = plan.Digest
	d.Agreed(said)
	d.Approve(plan.Digest)
	return true, nil
}

// briefly prints a plan without its fields.
func briefly(io console.Streams, plan *contract.Plan) error {
	brief := *plan
	brief.Changes = slices.Clone(plan.Changes)
	for i := range brief.Changes {
		brief.Changes[i].Fields = nil
	}
	if err := brief.Body(io.Text()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(io.Text(), "\n%s\ndigest %s\n\n", plan.Summary(), plan.Digest)
	return err
}

// consent asks a question on the terminal. Any answer but yes returns no approval; an interrupt ends op.
func consent(ctx context.Context, io console.Streams, op, question string) (*report.Approval, error) {
	ctx, release := console.UntilInterrupt(ctx, io.Stop, console.Interrupted(op, "run the same command again"))
	defer release()
	io.Err.End()
	said := &report.Approval{How: report.OnTerminal, Asked: time.Now().UTC()}
	fmt.Fprint(io.Screen(), question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(io.In).ReadString('\n') // an empty answer is no
		answer <- line
	}()
	select {
	case line := <-answer:
		line = strings.ToLower(strings.TrimSpace(line))
		if line != "y" && line != "yes" {
			return nil, nil
		}
		said.Answered = time.Now().UTC()
		return said, nil
	case <-ctx.Done():
		fmt.Fprintln(io.Screen())
		return nil, context.Cause(ctx)
	}
}

// codeNotAgreed: a release requires approval before its install, and there is no terminal.
const codeNotAgreed fault.Code = "PLT-031"

// approvalText is the text that a release requires approval for; empty: none.
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
	place := providers.LocationOf(c.Provider, stages.DeploymentOf(cfg))
	data := platform.ApprovalData{
		GuidanceData: platform.GuidanceData{
			Platform: r.Name, Version: r.Version, Deployment: cfg.Global.Name, Domain: cfg.Global.Domain, Scale: cfg.Profile().Name(),
			AdminEmail: cfg.Global.Admin.Email, Settings: cfg.Platform.Settings,
		},
		Provider: cfg.Provider, Cluster: place.Cluster, Region: place.Region,
	}
	for _, component := range on {
		data.Components = append(data.Components, component.Name)
	}
	return r.Approve(data)
}

// agree shows the release's text and asks, unless a flag has answered. It reports whether to install, and
// passes an approval to note.
func (o *installOptions) agree(ctx context.Context, io console.Streams, note func(*report.Approval)) (bool, error) {
	if o.notice == "" || o.approval.digest != "" || o.approval.yes || usage.InModule() {
		return true, nil
	}
	if !io.Interactive() {
		return false, &fault.Fault{
			Code: codeNotAgreed, Class: fault.Usage, Op: "install the platform", Err: errors.New("the release asks before anything is made, and there is no terminal to ask on:\n" + o.notice),
			Fix: "answer on the command line: slipway install --yes, or --approve with the digest of a plan",
		}
	}
	io.Err.End()
	fmt.Fprintf(io.Text(), "%s\n\n", o.notice)
	said, err := consent(ctx, io, "ask", "Install it? [y/N] ")
	if err == nil && said == nil {
		fmt.Fprint(io.Text(), nothingChanged)
	}
	if said == nil {
		return false, err
	}
	note(said)
	return true, nil
}
