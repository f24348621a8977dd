package main

import (
	"errors"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/slipway-sh/slipway/ci/origin"
)

// codeUncoded is the code of a failure that has none of its own, as in the program.
const codeUncoded = "RUN-003"

// refuse is err as a failure of the call that ends as one of Slipway's program
// does: with code and remedy on standard error and with its class as the exit code
// of `dagger call`. Of an error, the generated main passes on the message and the
// extensions of the gqlerror.Error in it, and nothing else; of those, the CLI
// takes the exit code (cmd/codegen/generator/go/templates/modules.go,
// cmd/dagger/functions.go of Dagger v0.20.8).
func refuse(err error) error {
	refusal, ok := errors.AsType[*origin.Refusal](err)
	if !ok {
		refusal = &origin.Refusal{Code: codeUncoded, Class: origin.Bug, Op: "prepare the call", Err: err,
			Fix: "report this with the output above"}
	}
	return &gqlerror.Error{Message: refusal.Error(), Extensions: refusal.Extensions()}
}
