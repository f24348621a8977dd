package config

import "strings"

// SecretRef tells where a secret is, and is not one itself: "kind:rest". The empty
// SecretRef names none. Its kinds are those of Dagger's secret providers.
type SecretRef string

// The kinds of references.
const (
	SecretEnv   = "env"   // env:NAME, an environment variable
	SecretFile  = "file"  // file:PATH
	SecretCmd   = "cmd"   // cmd:COMMAND, what a shell command prints
	SecretVault = "vault" // vault:PATH.KEY, of HashiCorp Vault's KV store, version 2
	SecretOp    = "op"    // op:VAULT/ITEM/FIELD, of 1Password
)

// RefForms is how a reference is written, for messages.
const RefForms = "env:NAME, file:PATH, cmd:COMMAND, vault:PATH.KEY or op:VAULT/ITEM/FIELD"

// Split is the kind of place and the name, path or command there.
func (r SecretRef) Split() (kind, name string) {
	kind, name, _ = strings.Cut(string(r), ":")
	return kind, name
}

// URI is the reference as Dagger writes it, such as "env://NAME"; empty for the
// empty reference.
func (r SecretRef) URI() string {
	if r == "" {
		return ""
	}
	kind, name := r.Split()
	return kind + "://" + name
}

// Wanted is what is expected where something else than text is.
func (r SecretRef) Wanted() string {
	return "where the secret is: " + RefForms + "; the secret itself does not belong in this file"
}

// Valid tells whether r is written as a reference is.
func (r SecretRef) Valid() bool { return refRE.MatchString(string(r)) }
