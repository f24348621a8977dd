package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
)

func newEnv(p *Program) *cobra.Command {
	var from source.Source
	cmd := &cobra.Command{
		Use: "env", Short: "Print a configuration as shell variables, for eval", Example: `  eval "$(slipway env --config slipway.yaml)"`, Args: usage.NoArgs,
		Long: `Print a configuration as variables of a POSIX shell: eval "$(slipway env)". Each value that is not
empty has a variable: global.name is SLIPWAY_CONFIG_GLOBAL_NAME. Lists have commas between their
items, and mappings of text are NAME=value,NAME=value. Other lists and mappings, such as hooks, and
lists with a comma in an item are left out. Secrets are never printed, because a configuration only
says where they are. For a stored deployment, SLIPWAY_DEPLOYMENT makes the shell's commands use it.`,
		RunE: console.AtOnce(func(_ context.Context, io console.Streams, _ []string) error {
			cfg, err := from.Load(io)
			if err != nil {
				return err
			}
			all, unfit, err := variables(cfg, answers.NewSchema(config.Describe(from.Providers.Sections()), nil))
			if err != nil {
				return err
			}
			if from.Stored {
				all = append([]variable{{source.EnvDeployment, from.Deployment}}, all...)
			}
			for _, path := range unfit {
				fmt.Fprintf(io.Err, "slipway: %s is left out: there is a comma in an item, or an equals sign in a name\n", path)
			}
			return export(io.Out, all)
		}),
	}
	from.Declare(cmd, p)
	from.AddState(cmd.Flags())
	return cmd
}

// export prints variables for a shell to evaluate.
func export(w io.Writer, all []variable) error {
	var b strings.Builder
	for _, v := range all {
		fmt.Fprintf(&b, "export %s='%s'\n", v.name, strings.ReplaceAll(v.value, "'", `'\''`))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

type variable struct{ name, value string }

// variables returns the values in effect, and the paths of lists and mappings that no variable can hold.
func variables(cfg *config.Config, schema *answers.Schema) (all []variable, unfit []string, err error) {
	values, err := cfg.Values()
	if err != nil {
		return nil, nil, err
	}
	fields := schema.Fields("")
	for name := range cfg.Choices() {
		if f, wrong := schema.Field(answers.Enabled(name)); wrong == nil {
			fields = append(fields, f)
		}
	}
	slices.SortFunc(fields, func(a, b answers.Field) int { return strings.Compare(a.Path, b.Path) })
	for _, f := range fields {
		var items []string
		switch v := valueAt(values, f.Path).(type) {
		case nil:
		case []any:
			for _, item := range v {
				items = append(items, fmt.Sprint(item))
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				key = strings.ReplaceAll(key, "=", ",") // as ambiguous as a comma
				items = append(items, key+"="+fmt.Sprint(v[key]))
			}
		default:
			if text := fmt.Sprint(v); text != "" {
				all = append(all, variable{f.EnvName(), text})
			}
		}
		switch {
		case f.Type == answers.Other || len(items) == 0:
		case slices.ContainsFunc(items, func(s string) bool { return strings.Contains(s, ",") }):
			unfit = append(unfit, f.Path)
		default:
			all = append(all, variable{f.EnvName(), strings.Join(items, ",")})
		}
	}
	return all, unfit, nil
}

// valueAt returns nil if there is no value.
func valueAt(values map[string]any, path string) any {
	section, rest, more := strings.Cut(path, ".")
	if !more {
		return values[section]
	}
	below, _ := values[section].(map[string]any)
	return valueAt(below, rest)
}
