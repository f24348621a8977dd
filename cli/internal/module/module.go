// Package module says whether this program runs for the Dagger module.
package module

import (
	"os"
)

// Env is set where the Dagger module runs this program: in a container, whose
// variables and files are not those of the module's caller.
const Env = "SLIPWAY_MODULE"

// Active reports whether this program runs for the Dagger module.
func Active() bool { return os.Getenv(Env) != "" }
