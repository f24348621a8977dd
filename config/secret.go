package config

import (
	"fmt"
	"strings"

	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/fault"
)

// CodeNoSecret: a secret is not where the configuration or a flag says.
const CodeNoSecret fault.Code = "CFG-007"

// SecretRef is a reference to a secret, "kind:rest", never the secret itself. The empty
// SecretRef refers to none. Its kinds are those of Dagger's secret providers.
type SecretRef string

// The kinds of references.
const (
	SecretEnv   = "env"   // env:NAME, an environment variable
	SecretFile  = "file"  // file:PATH
	SecretCmd   = "cmd"   // cmd:COMMAND, what a shell command prints
	SecretVault = "vault" // vault:PATH.KEY, of HashiCorp Vault's KV store, version 2
	SecretOp    = "op"    // op:VAULT/ITEM/FIELD, of 1Password
)

// RefForms lists the forms of references, for messages.
const RefForms = "env:NAME, file:PATH, cmd:COMMAND, vault:PATH.KEY or op:VAULT/ITEM/FIELD"

// Split returns the kind of place and the name, path or command there.
func (r SecretRef) Split() (kind, name string) {
	kind, name, _ = strings.Cut(string(r), ":")
	return kind, name
}

// URI returns the reference as Dagger writes it, such as "env://NAME"; empty for the
// empty reference.
func (r SecretRef) URI() string {
	if r == "" {
		return ""
	}
	kind, name := r.Split()
	return kind + "://" + name
}

// Runs reports whether a command runs on this machine for the secret.
func (r SecretRef) Runs() bool {
	kind, _ := r.Split()
	return kind == SecretCmd
}

// Wanted describes the expected value if something other than text was given.
func (r SecretRef) Wanted() string { return refWant("secret") }

// refWant describes what is expected in place of a value that is not a reference.
func refWant(what string) string {
	return fmt.Sprintf("where the %s is: %s; the %s itself does not belong in this file", what, RefForms, what)
}

// Valid reports whether r is a well-formed reference.
func (r SecretRef) Valid() bool { return refRE.MatchString(string(r)) }

// problem adds what is wrong with a reference that must be there, to a secret of that name.
func (r SecretRef) problem(l *document.List, field, what string) {
	switch {
	case r == "":
		l.Add(field, "nothing", "where the "+what+" is: "+RefForms)
	case !r.Valid():
		l.Add(field, "something else", refWant(what))
	}
}
