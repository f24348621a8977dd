// Package caller says who works on a deployment.
package caller

import (
	"cmp"
	"os"

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/module"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
)

// Env names the owner, where no flag does.
const Env = "SLIPWAY_OWNER"

// Flags say who works on a deployment.
type Flags struct {
	// Name is how they call themselves; empty: as the configuration says, or as this machine
	// knows them.
	Name string
	// Join makes a deployment of somebody else's theirs, too.
	Join bool
	// Here makes the engine the deployment's in place of the one that has its cluster.
	Here bool
	// Compares says that the command is refused on a deployment of somebody else's.
	Compares bool
}

// AddFlags declares the flag that every command on a deployment has.
func (f *Flags) AddFlags(set *pflag.FlagSet) {
	set.StringVar(&f.Name, "owner", os.Getenv(Env), "who works on the deployment, such as you@machine or a team; others do not change it by accident (env "+Env+"); advanced.owner of the configuration if not given, else user@machine, unless CI is set")
}

// AddJoin declares the flag of a command that is refused on somebody else's deployment.
func (f *Flags) AddJoin(set *pflag.FlagSet) {
	f.Compares = true
	set.BoolVar(&f.Join, "join", false, "work on a deployment of somebody else's: from now on it is yours, too")
}

// AddHere declares the flag of a command that makes a cluster, or forgets one.
func (f *Flags) AddHere(set *pflag.FlagSet) {
	set.BoolVar(&f.Here, "here", false, "make this engine the deployment's, whose state is in a bucket and whose cluster on another engine: what is there is left")
}

// Of is who works on a deployment with that configuration; empty where nobody says or asks.
// user and host are those of this program.
func (f *Flags) Of(cfg *config.Config, user, host string) (string, error) {
	if !f.Compares {
		return "", nil
	}
	name := cmp.Or(f.Name, cfg.Advanced.Owner)
	switch {
	case name != "":
		if want := config.OwnerWant(name); want != "" {
			return "", usage.Errorf("--owner is %q; give %s", name, want)
		}
	case module.Active(), os.Getenv("CI") != "" && os.Getenv("CI") != "false": // whose machines are nobody's
	default:
		name = user + "@" + host
	}
	if f.Join && name == "" {
		return "", usage.Errorf("--join is for somebody; say who you are with --owner")
	}
	return name, nil
}
