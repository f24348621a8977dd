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

A deployment is described by one YAML file, and nothing asks again. ` + "`slipway validate --config FILE`" + ` reports every problem at once and starts nothing. Everything but ` + "`apiVersion`" + ` has a default or is optional; [examples/config](../examples/config) has files to begin with. [configure.md](configure.md) says how to make the file and where each value comes from.

Editors with a YAML language server complete and check the file when it begins with this line; [config.schema.json](config.schema.json) is the schema, which ` + "`slipway schema`" + ` prints as well:

` + "```yaml" + `
# yaml-language-server: $schema=https://raw.githubusercontent.com/slipway-sh/slipway/main/docs/config.schema.json
apiVersion: slipway.sh/v1
` + "```" + `

**Secrets** are never in the file, only where they are: ` + "`env:NAME`, `file:PATH`, `cmd:COMMAND`" + ` (what a shell command prints), ` + "`vault:PATH.KEY`" + ` (HashiCorp Vault, a KV store of version 2 below ` + "`secret`" + ` or VAULT_PATH_PREFIX; VAULT_ADDR and so on) and ` + "`op:VAULT/ITEM/FIELD`" + ` (1Password; OP_SERVICE_ACCOUNT_TOKEN, or the command op). Their type below is *secret*. Values of components, the release's settings, and what hooks run and get in ` + "`env`" + ` are plain: they are in the records of runs, and in the cluster. ` + "`validate`, `install` and `configure`" + ` warn of those that look like a secret, by their names (` + "`adminPassword`" + `) or by themselves (a private key, a URL with a password).

**Environment variables** are replaced where a field is marked with *env*: ` + "`${NAME}`, or `${NAME:-default}`" + `; ` + "`$$`" + ` is a dollar sign.

**` + "`slipway configure`" + `** makes the file: it asks for the fields of the chosen provider and platform in a form, or takes answers: ` + "`--set global.name=staging`" + `, a file of ` + "`--answers`" + `, or variables: a field's path in capitals after SLIPWAY_CONFIG_, so that ` + "`aws.vpcId`" + ` is SLIPWAY_CONFIG_AWS_VPC_ID. For some fields variables of other programs, named below, suggest one.

**Older files** (` + "`version: 1`" + `, ` + "`slipway.sh/v1alpha1`" + `) are read as they are, and told of. ` + "`slipway config migrate --config FILE`" + ` writes them anew, and keeps the original beside them.
`

// page is the reference of all fields.
func page(s *jsonschema.Schema) []byte {
	var b strings.Builder
	b.WriteString(intro)
	reference.Write(&b, s)
	return []byte(b.String())
}
