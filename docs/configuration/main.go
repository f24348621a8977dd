// Writes docs/config.schema.json and docs/configuration.md from the types of the
// configuration: go run ./docs/configuration
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/invopop/jsonschema"

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
	if err := write("docs"); err != nil {
		fmt.Fprintln(os.Stderr, "configuration:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	files, err := generate()
	if err != nil {
		return err
	}
	return reference.Save(dir, files)
}

// generate makes the files.
func generate() (map[string][]byte, error) {
	text, err := config.Schema(providers.All().Sections())
	if err != nil {
		return nil, err
	}
	return map[string][]byte{schemaFile: text, pageFile: page(config.Describe(providers.All().Sections()))}, nil
}

const intro = `# The configuration

<!-- Written by go run ./docs/configuration; a change made here is undone by it. -->

One YAML file describes a deployment. Every field except ` + "`apiVersion`" + ` has a default or is optional. [configure.md](configure.md) says how to make the file, [examples/config](../examples/config) has files to begin with, and ` + "`slipway validate --config FILE`" + ` lists every error at once.

With this first line, editors with a YAML language server complete and check the file against [config.schema.json](config.schema.json), which ` + "`slipway schema`" + ` prints:

` + "```" + `yaml
# yaml-language-server: $schema=https://raw.githubusercontent.com/slipway-sh/slipway/main/docs/config.schema.json
apiVersion: slipway.sh/v1
` + "```" + `

**Secrets** (type *secret*) are references: ` + "`env:NAME`" + `, ` + "`file:PATH`" + `, ` + "`cmd:COMMAND`" + ` (the output of a shell command), ` + "`vault:PATH.KEY`" + ` (HashiCorp Vault, KV version 2 below ` + "`secret`" + ` or VAULT_PATH_PREFIX; VAULT_ADDR and so on) or ` + "`op:VAULT/ITEM/FIELD`" + ` (1Password; OP_SERVICE_ACCOUNT_TOKEN, or the command op). Component values, the release's settings and a hook's ` + "`run`" + `, ` + "`script`" + ` and ` + "`env`" + ` are plain text, also in run records and in the cluster. ` + "`validate`" + `, ` + "`install`" + ` and ` + "`configure`" + ` warn if such a text looks like a secret, by its name (` + "`adminPassword`" + `) or content (a private key, a URL with a password).

**Environment variables** are replaced in fields of type *env*: ` + "`${NAME}`" + `, or ` + "`${NAME:-default}`" + `; ` + "`$$`" + ` is a dollar sign.

**Answers** for ` + "`slipway configure`" + `: ` + "`--set global.name=staging`" + `, a file for ` + "`--answers`" + `, or variables such as SLIPWAY_CONFIG_AWS_VPC_ID for ` + "`aws.vpcId`" + `.

**Older files** (` + "`version: 1`" + `, ` + "`slipway.sh/v1alpha1`" + `) still work, with a warning. ` + "`slipway config migrate --config FILE`" + ` updates a file and keeps the original beside it.
`

// page is the reference of all fields.
func page(s *jsonschema.Schema) []byte {
	var b strings.Builder
	b.WriteString(intro)
	reference.Write(&b, s)
	return []byte(b.String())
}
