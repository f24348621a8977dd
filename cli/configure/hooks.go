package configure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/session"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// hooks run the hooks around configuring. Without hooks no engine is needed.
type hooks struct {
	c   *Command
	io  console.Streams
	on  conductor.Configuring
	old *config.Config // the existing configuration; nil: none, or an invalid one
}

func (c *Command) hooks(io console.Streams) *hooks {
	now := time.Now()
	a := &hooks{c: c, io: io, on: conductor.Configuring{Run: report.NewID(now), Started: now, File: c.base}}
	if len(c.base) == 0 || !c.own {
		return a
	}
	cfg, err := c.source.Parse(c.base, nil)
	if err != nil {
		fmt.Fprintf(io.Err, "slipway: %s is not valid as it is; hooks before configuring, if it has any, do not run\n", c.from)
		return a
	}
	a.old = cfg
	return a
}

// before runs the hooks of the existing configuration.
func (a *hooks) before(ctx context.Context) error {
	return a.with(ctx, a.old, true, nil, func(c *conductor.Conductor) error { return c.BeforeConfigure(ctx, a.on) })
}

// after runs the hooks of cfg after configuring. It returns outcome with their errors.
func (a *hooks) after(ctx context.Context, cfg *config.Config, outcome error) error {
	return a.with(ctx, cfg, false, outcome, func(c *conductor.Conductor) error { return c.AfterConfigure(ctx, a.on, outcome) })
}

// afterWrite runs the hooks of cfg after configuring, unless it was only printed. If the file is from elsewhere,
// it warns of what will run later instead.
func (a *hooks) afterWrite(ctx context.Context, cfg *config.Config) error {
	if !a.c.brought {
		if a.c.out == "-" {
			return nil
		}
		return a.after(ctx, cfg, nil)
	}
	refs := cfg.References(a.c.source.Providers.Sections())
	for _, setting := range slices.Sorted(maps.Keys(refs)) {
		if refs[setting].Runs() {
			fmt.Fprintf(a.io.Err, "slipway: warning: %s is taken from %s: that command runs on this machine when the configuration is used\n", redact.OneLine(setting), redact.OneLine(string(refs[setting])))
		}
	}
	for _, h := range cfg.HooksOf(config.Configure) {
		fmt.Fprintf(a.io.Err, "slipway: the hook %s did not run: it is from %s\n", h.Name, a.c.from)
	}
	return nil
}

// with calls do if cfg has hooks before or after configuring; otherwise it returns without.
func (a *hooks) with(ctx context.Context, cfg *config.Config, before bool, without error, do func(*conductor.Conductor) error) error {
	if cfg == nil || !slices.ContainsFunc(cfg.HooksOf(config.Configure), func(h config.Hook) bool { _, is := h.Target(); return is == before }) {
		return without
	}
	pins, err := a.c.images.Pins(cfg)
	if err == nil {
		err = a.c.images.Check(ctx)
	}
	if err != nil {
		return errors.Join(without, err)
	}
	s, err := session.Open(ctx, a.io, session.Options{Deployment: cfg.Global.Name})
	if err != nil {
		return errors.Join(without, err)
	}
	defer s.Close()
	images, err := a.c.images.Open(ctx, s.Client, cfg, s.Joined != nil, pins, nil)
	if err != nil {
		return errors.Join(without, err)
	}
	if images.Warning != "" {
		fmt.Fprintln(a.io.Err, "slipway: warning: "+images.Warning)
	}
	from := &secrets.Finder{Client: s.Client, Flags: a.c.secrets}
	c, err := conductor.New(conductor.Options{
		Client: s.Client, Config: cfg, Version: a.c.source.Version, Images: images, Stop: a.io.Stop, Observe: a.io.Err.Observe,
		Secret: func(ref config.SecretRef) (*dagger.Secret, error) { return from.Find(ctx, ref) },
	})
	if err != nil {
		return errors.Join(without, err)
	}
	return do(c)
}
