package sdk

import (
	"context"
	"errors"

	"github.com/dagger/dagger/core"
	"github.com/dagger/dagger/dagql"
)

// errDang is the answer to a module written in Dang: the Go module proxy does not serve the
// interpreter at the version that this release of Dagger was written for.
var errDang = errors.New("this build of the engine has no Dang SDK: use an engine of Dagger's own image for modules written in Dang")

// dangSDK refuses each module.
type dangSDK struct {
	root      *core.Query
	rawConfig map[string]any
}

func (sdk *dangSDK) AsRuntime() (core.Runtime, bool)                 { return sdk, true }
func (sdk *dangSDK) AsModuleTypes() (core.ModuleTypes, bool)         { return nil, false }
func (sdk *dangSDK) AsCodeGenerator() (core.CodeGenerator, bool)     { return nil, false }
func (sdk *dangSDK) AsClientGenerator() (core.ClientGenerator, bool) { return nil, false }

func (sdk *dangSDK) Runtime(context.Context, *core.SchemaBuilder, dagql.ObjectResult[*core.ModuleSource]) (core.ModuleRuntime, error) {
	return nil, errDang
}
