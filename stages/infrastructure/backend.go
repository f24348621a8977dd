package infrastructure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/state"
	"github.com/slipway-sh/slipway/stages/step"
)

// backendFile makes Terraform use another backend than the root says, which is
// "local".
const backendFile = "slipway_backend_override.tf.json"

// stateKey is the place of Terraform's state in the deployment's store.
const stateKey = "terraform/terraform.tfstate"

// backend is where Terraform keeps its state: in the state volume, which is the
// zero value, or in the bucket of the deployment's store. It holds no credential:
// those are in the environment.
type backend struct {
	kind     string         // Terraform's name for it; empty: local
	settings map[string]any // of the backend block
	key      string         // of the state in the deployment's store
}

// backendOf is the backend that goes with a place of the deployment's state.
func backendOf(place state.Place, getenv func(string) string) (backend, error) {
	if !place.Remote() {
		return backend{}, nil
	}
	u, err := url.Parse(place.URL)
	if err != nil {
		return backend{}, badBackend(errors.New("the address of the deployment's state is not a URL"))
	}
	q := u.Query()
	prefix := strings.Trim(q.Get("prefix"), "/")
	if prefix != "" {
		prefix += "/"
	}
	switch u.Scheme {
	case "s3":
		return backend{"s3", s3Backend(u.Host, prefix+stateKey, q), stateKey}, nil
	case "azblob":
		settings, err := azureBackend(u.Host, prefix+stateKey, q, getenv)
		return backend{"azurerm", settings, stateKey}, err
	case "gs":
		// Terraform adds the workspace's name.
		return backend{"gcs", map[string]any{"bucket": u.Host, "prefix": prefix + "terraform"}, "terraform/default.tfstate"}, nil
	}
	return backend{}, badBackend(fmt.Errorf("no backend of Terraform goes with a store of kind %q", u.Scheme))
}

func badBackend(err error) error {
	const fix = "give a state.url that Terraform supports, then run the same command again"
	return &fault.Fault{Code: CodeInit, Class: fault.Usage, Op: "choose Terraform's backend", Fix: fix, Err: err}
}

// s3Backend is the block of the backend "s3" for a bucket that q says how to reach.
func s3Backend(bucket, key string, q url.Values) map[string]any {
	s := map[string]any{"bucket": bucket, "key": key, "use_lockfile": true}
	for param, setting := range map[string]string{"region": "region", "profile": "profile", "kmskeyid": "kms_key_id"} {
		if v := q.Get(param); v != "" {
			s[setting] = v
		}
	}
	for param, setting := range map[string]string{
		"use_path_style": "use_path_style", "s3ForcePathStyle": "use_path_style",
		"dualstack": "use_dualstack_endpoint", "fips": "use_fips_endpoint",
	} {
		if q.Get(param) == "true" {
			s[setting] = true
		}
	}
	if q.Get("ssetype") != "" {
		s["encrypt"] = true
	}
	if role := q.Get("role"); role != "" {
		s["assume_role"] = map[string]any{"role_arn": role}
	}
	if q.Get("request_checksum_calculation") == "when_required" {
		s["skip_s3_checksum"] = true
	}
	if endpoint := q.Get("endpoint"); endpoint != "" {
		s["endpoints"] = map[string]any{"s3": endpoint}
		for _, skip := range []string{"credentials_validation", "requesting_account_id", "metadata_api_check", "region_validation"} {
			s["skip_"+skip] = true // of AWS; this is another server
		}
	}
	return s
}

// azureBackend is the block of the backend "azurerm" for a container.
func azureBackend(container, key string, q url.Values, getenv func(string) string) (map[string]any, error) {
	account := q.Get("storage_account")
	if account == "" {
		account = getenv("AZURE_STORAGE_ACCOUNT")
	}
	s := map[string]any{"storage_account_name": account, "container_name": container, "key": key}
	switch domain := q.Get("domain"); domain {
	case "", "blob.core.windows.net":
	case "blob.core.usgovcloudapi.net":
		s["environment"] = "usgovernment"
	case "blob.core.chinacloudapi.cn":
		s["environment"] = "china"
	default:
		return nil, badBackend(fmt.Errorf("an account of %s cannot keep the state of Terraform", domain))
	}
	if getenv("AZURE_STORAGE_KEY") == "" && getenv("AZURE_STORAGE_SAS_TOKEN") == "" {
		s["use_azuread_auth"] = true
	}
	return s, nil
}

// write puts the backend's block into Terraform's directory; nothing for "local".
func (b backend) write(dir string) error {
	if b.kind == "" {
		return nil
	}
	text, err := json.MarshalIndent(map[string]any{"terraform": map[string]any{"backend": map[string]any{b.kind: b.settings}}}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, backendFile), append(text, '\n'), 0o600)
}

// options are those of `terraform init`.
func (b backend) options(env *step.Env) []tfexec.InitOption {
	out := []tfexec.InitOption{tfexec.Reconfigure(true)}
	if b.kind == "" {
		out = append(out, tfexec.BackendConfig("path="+statePath(env)))
	}
	return out
}

// azureVariables gives Terraform's backend the credentials under its own names.
func azureVariables() map[string]string {
	return map[string]string{
		"AZURE_STORAGE_KEY": "ARM_ACCESS_KEY", "AZURE_STORAGE_SAS_TOKEN": "ARM_SAS_TOKEN",
		"AZURE_TENANT_ID": "ARM_TENANT_ID", "AZURE_CLIENT_ID": "ARM_CLIENT_ID", "AZURE_CLIENT_SECRET": "ARM_CLIENT_SECRET",
	}
}

// currentState reads Terraform's state from where it is. Without one the error is
// fs.ErrNotExist.
func currentState(ctx context.Context, env *step.Env) (tfstate, error) {
	b, err := backendOf(env.Place, os.Getenv)
	if err != nil {
		return tfstate{}, err
	}
	if b.kind == "" {
		return readState(statePath(env))
	}
	s, err := env.Store(ctx)
	if err != nil {
		return tfstate{}, err
	}
	data, err := s.Get(ctx, b.key)
	if err != nil {
		return tfstate{}, err
	}
	return parseState(s.Location()+"/"+b.key, data)
}

// notLeftBehind refuses to begin a new state in a bucket while the volume has one
// with resources: those would be made a second time.
func notLeftBehind(ctx context.Context, env *step.Env) error {
	if !env.Place.Remote() {
		return nil
	}
	if _, err := currentState(ctx, env); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	left, err := readState(statePath(env))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(left.Resources) == 0 {
		return nil
	} else if err != nil {
		return err
	}
	b, err := backendOf(env.Place, os.Getenv)
	if err != nil {
		return err
	}
	s, err := env.Store(ctx)
	if err != nil {
		return err
	}
	return &fault.Fault{
		Code: CodeLeftBehind, Class: fault.Preflight, Op: "begin a Terraform state in " + s.Location(),
		Fix: "copy it to " + s.Location() + "/" + b.key + " as docs/state.md says, or give the state.url that the deployment was installed with",
		Err: fmt.Errorf("the state volume has one with %d resources, which the bucket does not have", len(left.Resources)),
	}
}

// lockIDRE finds the id of a lock in what Terraform says about one that it does
// not get.
var lockIDRE = regexp.MustCompile(`(?m)^[│\s]*ID:\s+(\S+)\s*$`)

// root is a Terraform root that is initialised.
type root struct {
	*tfexec.Terraform
	remove func() // its directory
	wait   string // for the state's lock, as Terraform reads it
	// killed tells that a Terraform that was killed may have left its lock in a
	// bucket. The system gives up the one of a file.
	killed bool
}

// locked runs f, which takes the lock of the state. A Terraform that was killed
// leaves its lock in a bucket: it is removed, since the run has the deployment's
// lock, and the record of the step that was killed says so.
func (r root) locked(ctx context.Context, env *step.Env, f func() error) error {
	err := f()
	if err == nil || !r.killed || !strings.Contains(err.Error(), stateLocked) {
		return err
	}
	id := lockIDRE.FindStringSubmatch(err.Error())
	if id == nil {
		return err
	}
	env.Progress("removing the lock of a Terraform that was killed")
	if err := r.ForceUnlock(ctx, id[1]); err != nil {
		return err
	}
	return f()
}
