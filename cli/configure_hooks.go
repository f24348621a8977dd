package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/migrate"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// around runs the hooks around configuring. Without hooks it needs no engine.
type around struct {
	c   *configuring
	io  streams
	on  conductor.Configuring
	old *config.Config // the configuration that there is; nil: none, or one that is not valid
}

func (c *configuring) around(io streams) *around {
	now := time.Now()
	a := &around{c: c, io: io, on: conductor.Configuring{Run: report.NewID(now), Started: now, File: c.base}}
	if len(c.base) == 0 || !c.own {
		return a
	}
	cfg, err := c.t.parse(c.base, func([]migrate.Change) {})
	if err != nil {
		fmt.Fprintf(io.err, "slipway: %s is not valid as it is; hooks before configuring, if it has any, do not run\n", c.from)
		return a
	}
	a.old = cfg
	return a
}

// before runs the hooks before configuring, of the configuration that there is.
func (a *around) before(ctx context.Context) error {
	return a.with(ctx, a.old, true, nil, func(hooks *conductor.Conductor) error { return hooks.BeforeConfigure(ctx, a.on) })
}

// after runs the hooks after configuring, of cfg. It returns outcome with the errors
// of hooks.
func (a *around) after(ctx context.Context, cfg *config.Config, outcome error) error {
	return a.with(ctx, cfg, false, outcome, func(hooks *conductor.Conductor) error { return hooks.AfterConfigure(ctx, a.on, outcome) })
}

// with calls do with what runs the hooks of cfg, if it has any before or after
// configuring; if not, it returns without.
func (a *around) with(ctx context.Context, cfg *config.Config, before bool, without error, do func(*conductor.Conductor) error) error {
	if cfg == nil || !slices.ContainsFunc(cfg.HooksOf(config.Configure), func(h config.Hook) bool { _, is := h.Place(); return is == before }) {
		return without
	}
	t := &a.c.t
	t.cfg = cfg
	pins, err := t.pins()
	if err != nil {
		return errors.Join(without, err)
	}
	client, end, err := t.session(ctx, a.io)
	if err != nil {
		return errors.Join(without, err)
	}
	defer end()
	images, err := t.images(ctx, client, pins, nil)
	if err != nil {
		return errors.Join(without, err)
	}
	return do(conductor.New(conductor.Options{
		Client: client, Config: cfg, Version: a.io.version, Images: images, Stop: a.io.stop, Hint: addressed(t.flags), Observe: a.io.err.Observe,
		Secret: func(ref config.SecretRef) (*dagger.Secret, error) { return t.secret(ctx, client, ref) },
	}))
}
