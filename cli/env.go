package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config"
)

func newEnv(p *Program) *cobra.Command {
	var from source.Source
	cmd := &cobra.Command{
		Use: "env", Short: "Print a configuration as shell variables, for eval", Example: `  eval "$(slipway env --config slipway.yaml)"`, Args: noArgs,
		Long: `Print a configuration as variables of a POSIX shell: eval "$(slipway env)". There is a
variable for each value in effect, and none for an empty one: global.name is
SLIPWAY_CONFIG_GLOBAL_NAME. Lists have commas between their items, and mappings of
text are NAME=value,NAME=value. Hooks, other lists of mappings, mappings of anything
else than text, and what has a comma in an item are left out. No secret is among
them, since a configuration only says where secrets are. For a stored
deployment SLIPWAY_DEPLOYMENT is set, too: the commands of that shell work on it.`,
		RunE: atOnce(func(_ context.Context, io console.Streams, _ []string) error {
			cfg, err := from.Load(io)
			if err != nil {
				return err
			}
			all, err := variables(cfg, config.Describe(from.Providers.Sections()))
			if err != nil {
				return err
			}
			if from.Stored {
				all.set = append([]variable{{source.EnvDeployment, from.Deployment}}, all.set...)
			}
			for _, path := range all.unfit {
				fmt.Fprintf(io.Err, "slipway: %s is left out: there is a comma in an item, or an equals sign in a name\n", path)
			}
			return export(io.Out, all.set)
		}),
	}
	addSource(cmd, p, &from)
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

// variable is an environment variable.
type variable struct{ name, value string }

// assigned are the values of a configuration as environment variables, by their
// paths.
type assigned struct {
	set   []variable
	unfit []string // what a variable cannot hold, though it is of a kind that is there
}

// variables are the values in effect, in the order of their paths.
func variables(cfg *config.Config, schema *jsonschema.Schema) (*assigned, error) {
	values, err := cfg.Values()
	if err != nil {
		return nil, err
	}
	out := &assigned{}
	out.mapping("", values, schema)
	return out, nil
}

// mapping adds what is in a mapping: the fields of one that has some, the entries of
// one whose entries have some, and a mapping of text as one variable.
func (x *assigned) mapping(path string, values map[string]any, schema *jsonschema.Schema) {
	entry := schema.AdditionalProperties
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if schema.Properties != nil {
			if field, ok := schema.Properties.Get(key); ok {
				x.value(strings.TrimPrefix(path+"."+key, "."), values[key], field)
			}
		} else if entry != nil && entry.Properties != nil {
			x.value(path+"."+key, values[key], entry)
		}
	}
	if schema.Properties != nil || entry != nil && entry.Properties != nil {
		return
	}
	var items []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		text, ok := values[key].(string)
		if !ok {
			return
		}
		if strings.Contains(key, "=") {
			x.unfit = append(x.unfit, path)
			return
		}
		items = append(items, key+"="+text)
	}
	x.list(path, items)
}

// value adds the value at path.
func (x *assigned) value(path string, value any, schema *jsonschema.Schema) {
	switch value := value.(type) {
	case nil:
	case map[string]any:
		x.mapping(path, value, schema)
	case []any:
		var items []string
		for _, item := range value {
			switch item.(type) {
			case map[string]any, []any, nil:
				return
			}
			items = append(items, fmt.Sprint(item))
		}
		x.list(path, items)
	default:
		x.add(path, fmt.Sprint(value))
	}
}

// list adds a list that has no commas in its items.
func (x *assigned) list(path string, items []string) {
	if slices.ContainsFunc(items, func(s string) bool { return strings.Contains(s, ",") }) {
		x.unfit = append(x.unfit, path)
		return
	}
	x.add(path, strings.Join(items, ","))
}

func (x *assigned) add(path, value string) {
	if value != "" {
		x.set = append(x.set, variable{config.EnvName(path), value})
	}
}
