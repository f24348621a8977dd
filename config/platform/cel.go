package platform

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
)

// CompileCEL compiles the expression of a gate: one of true or false, with the object as
// variable object.
func CompileCEL(expression string) (cel.Program, error) {
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.OptionalTypes())
	if err != nil {
		return nil, fmt.Errorf("prepare the expression language: %w", err)
	}
	ast, issues := env.Compile(expression)
	if all := issues.Errors(); len(all) > 0 {
		return nil, inLine(all[0])
	}
	if out := ast.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("it is %s, not true or false", out)
	}
	return env.Program(ast, cel.CostLimit(1_000_000))
}

// inLine is what is wrong with an expression, without the lists and pictures that go with
// it.
func inLine(e *cel.Error) error {
	message, _, _ := strings.Cut(e.Message, " expecting ")
	return fmt.Errorf("character %d: %s", e.Location.Column()+1, strings.TrimSuffix(message, " (in container '')"))
}
