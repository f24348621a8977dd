package infrastructure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

const (
	// stopDelay is how long Terraform may take to end after SIGINT, before it is killed.
	stopDelay = 25 * time.Second
	varFile   = "slipway.auto.tfvars.json"
	planFile  = "slipway.plan"
)

// terraform applies the provider's root, unless its plan has no changes: the state's serial stays then.
func terraform(ctx context.Context, env *step.Env, in contract.TerraformInput) (contract.Infrastructure, error) {
	var out contract.Infrastructure
	if err := reportErrored(ctx, env); err != nil {
		return out, badState(err)
	}
	tf, err := openRoot(ctx, env, in)
	if err != nil {
		return out, err
	}
	defer tf.remove()
	env.Progress("terraform plan")
	changes, err := tf.Plan(ctx, tfexec.Out(planFile))
	if err != nil {
		return out, badTerraform(CodeTerraform, "plan the Terraform root", err)
	}
	if changes {
		env.Progress("terraform apply")
		if err := tf.changed(ctx, env, tf.Apply(ctx, tfexec.DirOrPlan(planFile))); err != nil {
			return out, badTerraform(CodeTerraform, "apply the Terraform root", err)
		}
	}
	values, err := tf.Output(ctx)
	if err != nil {
		return out, badTerraform(CodeOutput, "read the Terraform outputs", err)
	}
	if out, err = outputs(values); err != nil {
		return out, &fault.Fault{
			Code: CodeOutput, Class: fault.Step, Op: "read the Terraform outputs",
			Fix: "correct the outputs of the provider's Terraform root, then run: slipway install",
			Err: err,
		}
	}
	state, err := currentState(ctx, env)
	if err != nil {
		return out, badState(err)
	}
	out.TerraformSerial = state.Serial
	if changes {
		env.Progress("applied, serial %d, %d resources", state.Serial, len(state.Resources))
	} else {
		env.Progress("no changes, serial %d", state.Serial)
	}
	return out, nil
}

// verifyTerraform checks that the state is the one that the outputs came from.
func verifyTerraform(ctx context.Context, env *step.Env, _ contract.TerraformInput, out contract.Infrastructure) error {
	state, err := currentState(ctx, env)
	if err != nil {
		return err
	}
	if state.Serial != out.TerraformSerial {
		return fmt.Errorf("the Terraform state has serial %d instead of %d", state.Serial, out.TerraformSerial)
	}
	if len(state.Resources) == 0 {
		return errors.New("the Terraform state is empty")
	}
	return nil
}

// terraformDestroy removes what the root made; without state, nothing.
func terraformDestroy(ctx context.Context, env *step.Env, in contract.TerraformInput) (contract.TerraformDestroyed, error) {
	var out contract.TerraformDestroyed
	if err := reportErrored(ctx, env); err != nil {
		return out, badState(err)
	}
	before, err := currentState(ctx, env)
	if errors.Is(err, fs.ErrNotExist) {
		env.Progress("there is no Terraform state: nothing to destroy")
		return out, nil
	}
	if err != nil {
		return out, badState(err)
	}
	out.Serial = before.Serial
	if len(before.Resources) == 0 {
		env.Progress("the Terraform state is empty: nothing to destroy")
		return out, nil
	}
	tf, err := openRoot(ctx, env, in)
	if err != nil {
		return out, err
	}
	defer tf.remove()
	env.Progress("terraform destroy")
	if err := tf.changed(ctx, env, tf.Destroy(ctx)); err != nil {
		return out, badTerraform(CodeTerraform, "destroy what the Terraform root made", err)
	}
	after, err := currentState(ctx, env)
	if err != nil {
		return out, badState(err)
	}
	if n := len(after.Resources); n > 0 {
		return out, &fault.Fault{
			Code: CodeTerraform, Class: fault.Step, Op: "destroy what the Terraform root made",
			Fix: "look at the step's log, then run again: slipway destroy",
			Err: fmt.Errorf("%d resources are left: %s", n, strings.Join(after.addresses(), ", ")),
		}
	}
	return contract.TerraformDestroyed{Serial: after.Serial, Changed: true}, nil
}

// root is a Terraform root that is initialised.
type root struct {
	*tfexec.Terraform
	dir     string
	backend *backend
	remove  func() // its directory and its backend
}

// changed is the error of a command that changes what the root has made: why the state could
// not be stored, if that is so. Terraform leaves the state in a file then, which is kept.
func (r root) changed(ctx context.Context, env *step.Env, err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(r.backend.because(err), keepErrored(ctx, env, r.dir))
}

// openRoot initialises a copy of the root on the deployment's state, and returns Terraform for it.
func openRoot(ctx context.Context, env *step.Env, in contract.TerraformInput) (_ root, err error) {
	var tf root // returned only without an error
	tf.dir, err = os.MkdirTemp("", "slipway-terraform-")
	if err != nil {
		return root{}, fmt.Errorf("make a directory for Terraform: %w", err)
	}
	tf.remove = func() {
		if tf.backend != nil {
			if err := tf.backend.close(); err != nil {
				env.Logger.Warn("end Terraform's backend", "error", err)
			}
		}
		if err := os.RemoveAll(tf.dir); err != nil {
			env.Logger.Warn("remove Terraform's directory", "error", err)
		}
	}
	defer func() {
		if err != nil {
			tf.remove()
		}
	}()
	if tf.backend, err = serveState(ctx, env); err != nil {
		return root{}, err
	}
	if err := errors.Join(prepare(tf.dir, env.TerraformDir, in.Vars), tf.backend.write(tf.dir)); err != nil {
		return root{}, fmt.Errorf("prepare the Terraform root: %w", err)
	}
	tf.Terraform, err = tfexec.NewTerraform(tf.dir, filepath.Join(env.ToolsDir, "terraform"))
	if err != nil {
		return root{}, badTerraform(CodeTerraform, "start Terraform", err)
	}
	tf.SetStdout(env.Output())
	tf.SetStderr(env.Output())
	if err := errors.Join(tf.SetEnv(environment(os.Environ(), tf.dir)), tf.SetWaitDelay(stopDelay)); err != nil {
		return root{}, badTerraform(CodeTerraform, "start Terraform", err)
	}
	env.Progress("terraform init")
	if err := tf.Init(ctx, tfexec.Reconfigure(true)); err != nil {
		return root{}, badTerraform(CodeTerraform, "initialise the Terraform root", err)
	}
	return tf, nil
}

func prepare(dir, root string, vars map[string]any) error {
	names, err := filepath.Glob(filepath.Join(root, "*.tf"))
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("%s holds no *.tf", root)
	}
	const lockFile = ".terraform.lock.hcl"
	var locked []byte
	for _, name := range append(names, filepath.Join(root, lockFile)) {
		b, err := bounded.File(name, bounded.Generated)
		if filepath.Base(name) == lockFile {
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			locked = b
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), b, 0o600); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".terraformrc"), installable(locked), 0o600); err != nil {
		return err
	}
	if vars == nil {
		vars = map[string]any{}
	}
	b, err := json.MarshalIndent(vars, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, varFile), b, 0o600)
}

var lockedRE = regexp.MustCompile(`(?m)^provider ("[^"\s]+")`)

// installable is the CLI configuration with which Terraform installs the providers in a root's lock file
// and no others: it would also get and run those that the state names, which others may have written.
func installable(lockFile []byte) []byte {
	var direct string
	for _, m := range lockedRE.FindAllSubmatch(lockFile, -1) {
		direct += string(m[1]) + ", "
	}
	if direct != "" { // an empty list would be all
		direct = "  direct {\n    include = [" + direct + "]\n  }\n"
	}
	return []byte("provider_installation {\n" + direct + "}\n")
}

// environment is the environment for Terraform: the step's, without the credentials for the
// deployment's state, and without whatever would make it behave differently here and there.
func environment(environ []string, dir string) map[string]string {
	out := map[string]string{}
	for _, kv := range environ {
		k, v, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(k, "TF_") && !strings.HasPrefix(k, "SLIPWAY_") && !slices.Contains(store.SecretVariables(), k) {
			out[k] = v
		}
	}
	out["CHECKPOINT_DISABLE"] = "1"
	out["HOME"] = dir // no settings of a user
	return out
}

// outputs reads the six outputs that every provider's root has.
func outputs(values map[string]tfexec.OutputMeta) (contract.Infrastructure, error) {
	var out contract.Infrastructure
	var cluster, class struct {
		Name string `json:"name"`
	}
	var api struct {
		URL string `json:"url"`
	}
	var errs []error
	read := map[string]struct {
		into  any
		field string
		value *string // which may not be empty
	}{
		"cluster_name": {&cluster, "name", &cluster.Name}, "api_endpoint": {&api, "url", &api.URL},
		"storage_class": {&class, "name", &class.Name}, "load_balancer": {&out.LoadBalancer, "kind", &out.LoadBalancer.Kind},
		"object_store": {&out.ObjectStore, "kind", &out.ObjectStore.Kind}, "database": {&out.Database, "kind", &out.Database.Kind},
	}
	for _, name := range providers.Outputs() {
		o := read[name]
		if v, ok := values[name]; !ok {
			errs = append(errs, fmt.Errorf("output %s is missing", name))
		} else if err := json.Unmarshal(v.Value, o.into); err != nil {
			errs = append(errs, fmt.Errorf("output %s: %w", name, err))
		} else if *o.value == "" {
			errs = append(errs, fmt.Errorf("output %s.%s is empty", name, o.field))
		}
	}
	out.ClusterName, out.APIEndpoint, out.StorageClass = cluster.Name, api.URL, class.Name
	return out, errors.Join(errs...)
}

// badTerraform is the fault for an error of the program, whose full text is in the step's log.
// A fault, such as that of a state that cannot be stored, stays what it is.
func badTerraform(code fault.Code, op string, err error) error {
	if _, ok := errors.AsType[*fault.Fault](err); ok {
		return fmt.Errorf("%s: %w", op, err)
	}
	text := err.Error()
	cause := err
	if lines := headlines(text); lines != "" {
		cause = &terraformError{message: lines, err: err}
	}
	return &fault.Fault{Code: code, Class: fault.Step, Op: op, Fix: "look at the step's log, then run the same command again", Err: cause}
}

// terraformError shows what Terraform says in short, and keeps the whole.
type terraformError struct {
	message string
	err     error
}

func (e *terraformError) Error() string { return e.message }
func (e *terraformError) Unwrap() error { return e.err }

// frame is what Terraform draws at the left of an error.
var frame = regexp.MustCompile(`(?m)^(│ ?|╷|╵)`)

// headlines are the errors in Terraform's output: what follows "Error:", and the first paragraph that
// explains it, such as the error_message of a condition. What Terraform prints of the root's files in
// between is indented.
func headlines(text string) string {
	var out []string
	for _, block := range strings.Split("\n"+frame.ReplaceAllString(text, ""), "\nError: ")[1:] {
		block, _, _ = strings.Cut(block, "\nWarning: ")
		var said []string
		for n, line := range strings.Split(block, "\n") {
			blank := strings.TrimSpace(line) == ""
			if blank && len(said) > 1 {
				break
			}
			if n == 0 || !blank && (len(said) > 1 || !strings.HasPrefix(line, "  ")) {
				said = append(said, strings.TrimSpace(line))
			}
		}
		out = append(out, strings.TrimSuffix(said[0]+": "+strings.Join(said[1:], " "), ": "))
	}
	return strings.Join(out, "; ")
}

// badState is the fault of a state that cannot be read, unless err has a code.
func badState(err error) error {
	if _, ok := errors.AsType[*fault.Fault](err); ok {
		return err
	}
	const fix = "restore the last one below terraform/ from the one before it, then run the same command again"
	return &fault.Fault{Code: store.CodeDamaged, Class: fault.Step, Op: "read the Terraform state", Fix: fix, Err: err}
}
