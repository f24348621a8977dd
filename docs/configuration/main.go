// Writes docs/config.schema.json and docs/configuration.md from the types of the
// configuration: go run ./docs/configuration
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/docs/internal/reference"
	providers "github.com/slipway-sh/slipway/providers/all"
)

// The files, in docs.
const (
	schemaFile = "config.schema.json"
	pageFile   = "configuration.md"
)

func main() {
	files, err := generate()
	if err == nil {
		err = reference.Save("docs", files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "configuration:", err)
		os.Exit(1)
	}
}

// generate makes the files.
func generate() (map[string][]byte, error) {
	text, err := config.Schema(providers.All().Sections())
	if err != nil {
		return nil, err
	}
	return map[string][]byte{schemaFile: text, pageFile: page()}, nil
}

const intro = `# The configuration

<!-- Written by go run ./docs/configuration; a change made here is undone by it. -->

All fields of the YAML file that describes a deployment; only ` + "`apiVersion`" + ` is required. [configure.md](configure.md) says how to make the file, [examples/config](../examples/config) has files to begin with.

With this first line, editors with a YAML language server complete and check the file against [config.schema.json](config.schema.json), which ` + "`slipway schema`" + ` prints. The schema also has the settings of providers on which Slipway cannot install yet.

` + "```" + `yaml
# yaml-language-server: $schema=https://raw.githubusercontent.com/slipway-sh/slipway/main/docs/config.schema.json
apiVersion: slipway.sh/v1
` + "```" + `

**Secrets** (type *secret*) are references: ` + "`env:NAME`" + `, ` + "`file:PATH`" + `, ` + "`cmd:COMMAND`" + ` (the output of a shell command), ` + "`vault:PATH.KEY`" + ` (HashiCorp Vault, KV version 2 below ` + "`secret`" + ` or VAULT_PATH_PREFIX, at VAULT_ADDR) or ` + "`op:VAULT/ITEM/FIELD`" + ` (1Password; OP_SERVICE_ACCOUNT_TOKEN, or the command op). Component values, the release's settings and a hook's ` + "`run`" + `, ` + "`script`" + ` and ` + "`env`" + ` are plain text, also in run records and in the cluster; Slipway warns if such a text looks like a secret.

**Environment variables** are replaced in fields of type *env*: ` + "`${NAME}`" + `, or ` + "`${NAME:-default}`" + `; ` + "`$$`" + ` is a dollar sign.

**Older files** (` + "`version: 1`" + `, ` + "`slipway.sh/v1alpha1`" + `) still work, with a warning. ` + "`slipway config migrate --config FILE`" + ` updates a file and keeps the original beside it.
`

// page is the reference of all fields, without those of providers on which Slipway cannot
// install yet.
func page() []byte {
	registry := providers.All()
	s := config.Describe(registry.Sections())
	for _, name := range registry.Names() {
		if _, err := registry.Get(name); err != nil {
			s.Properties.Delete(name)
		}
	}
	var b strings.Builder
	b.WriteString(intro)
	reference.Write(&b, s)
	return []byte(b.String())
}
