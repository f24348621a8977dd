package containers

import (
	"context"
	"fmt"
	"strings"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/containers/engineconfig"
)

// Volumes is what an engine does with cache volumes that no session uses.
type Volumes struct {
	// Kept says that it never collects them.
	Kept bool
	// Untold says that the engine does not tell this client.
	Untold bool
	// Why says what it may do otherwise, or why that is not known.
	Why string
}

// notMain is what an engine says to a client within a function of a module: only the client that
// opened the session learns the policy (v0.20.8, core/query.go).
const notMain = "only the main client"

// VolumesOf asks an engine what it does with cache volumes. Of its policy it tells the limits
// and not what it is about, so that only two are known to keep them: that of an engine of
// make engine, and that of engineconfig.Text.
func VolumesOf(ctx context.Context, client *dagger.Client) (Volumes, error) {
	engine := client.Engine()
	name, err := engine.Name(ctx)
	if ctx.Err() != nil {
		return Volumes{}, context.Cause(ctx)
	}
	if err == nil && name == engineconfig.Own {
		return Volumes{Kept: true}, nil
	}
	limits := struct{ reserved, most, free int }{}
	for _, limit := range []struct {
		into *int
		ask  func(context.Context) (int, error)
	}{
		{&limits.reserved, engine.LocalCache().ReservedSpace},
		{&limits.most, engine.LocalCache().MaxUsedSpace},
		{&limits.free, engine.LocalCache().MinFreeSpace},
	} {
		if err == nil {
			*limit.into, err = limit.ask(ctx)
		}
	}
	switch {
	case ctx.Err() != nil:
		return Volumes{}, context.Cause(ctx)
	case err != nil && strings.Contains(err.Error(), notMain):
		return Volumes{Untold: true, Why: "whether the engine keeps cache volumes cannot be asked from within dagger call"}, nil
	case err != nil:
		return Volumes{Why: "the engine does not say whether it keeps cache volumes: " + err.Error()}, nil
	case limits.reserved == engineconfig.Reserved:
		return Volumes{Kept: true}, nil
	case limits == struct{ reserved, most, free int }{}:
		return Volumes{Why: "the engine names no limits: it collects nothing, or everything that no session uses"}, nil
	}
	return Volumes{Why: fmt.Sprintf("the engine collects cache volumes that no session uses, by default after 48 hours, unless its policy leaves them out, which it does not tell (limits: %s reserved, %s used at most, %s free)",
		space(limits.reserved), space(limits.most), space(limits.free))}, nil
}

// space is a number of bytes for people.
func space(n int) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}
