package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/release"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/certificate"
	"github.com/slipway-sh/slipway/config/platform"
)

type validateOptions struct {
	source  source.Source
	release release.Flags
}

func newValidate(p *Program) *cobra.Command {
	var o validateOptions
	cmd := &cobra.Command{Use: "validate", Short: "Checks a configuration; starts nothing", Args: noArgs, RunE: atOnce(o.run)}
	addSource(cmd, p, &o.source, false)
	o.release.AddFlags(cmd.Flags())
	return cmd
}

func (o *validateOptions) run(_ context.Context, io console.Streams, _ []string) error {
	cfg, err := o.source.Load(io)
	if err != nil {
		return err
	}
	found, err := o.release.Load(cfg, o.source.Path)
	if err == nil {
		_, err = release.Settings(nil, cfg, found)
		err = errors.Join(err, givenCertificate(cfg, found, time.Now()))
	}
	if err != nil {
		return err
	}
	note := ""
	if _, err := o.source.Providers.Get(cfg.Provider); err != nil {
		note = fmt.Sprintf("   (nothing can be installed to %s yet)", cfg.Provider)
	}
	fmt.Fprintf(io.Out, "valid: deployment %s on %s, platform %s%s\n", cfg.Global.Name, cfg.Provider, cfg.Platform.Release, note)
	return nil
}

// givenCertificate judges the certificate that the configuration brings, with its key
// where that can be read without asking anybody.
func givenCertificate(cfg *config.Config, r *platform.Release, now time.Time) error {
	if cfg.TLS.Mode != config.UserCertificate {
		return nil
	}
	off, err := r.Off(cfg.Choices())
	if err != nil {
		return err
	}
	hosts := r.Hosts(cfg.Global.Domain, cfg.Global.Name, off)
	errs := certificate.Given([]byte(cfg.TLS.Certificate), secrets.AtHand(cfg.TLS.Key), []byte(cfg.TLS.CA), hosts, now)
	if len(errs) == 0 {
		return nil
	}
	return certificate.Invalid(errors.Join(errs...))
}
