package infrastructure

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/certificate"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

// preflight checks machine and tools and reports everything that is missing at
// once.
func (t toolchain) preflight(ctx context.Context, env *step.Env, in contract.PreflightInput) (contract.Preflight, error) {
	seen, problems, err := look(ctx, env, in)
	if err != nil {
		return contract.Preflight{}, err
	}
	out := contract.Preflight{
		MemoryBytes: seen.memory, DiskBytes: seen.disk, CPUs: seen.cpus, Kernel: seen.kernel, Tools: map[string]string{},
		Raises: raises(seen, in.Requirements),
	}
	for _, tool := range slices.Sorted(maps.Keys(in.Tools)) {
		version, err := t.of(env).version(ctx, tool)
		if err != nil {
			problems = append(problems, problem{fmt.Sprintf("%s does not run: %v", tool, err), "build the bundle again: make bundle"})
			continue
		}
		out.Tools[tool] = version
		if want := strings.TrimPrefix(in.Tools[tool], "v"); version != want {
			problems = append(problems, problem{
				fmt.Sprintf("%s is version %s instead of %s", tool, version, want), "build the bundle again: make bundle",
			})
		}
	}
	if len(problems) > 0 {
		return contract.Preflight{}, unmet(CodePreflight, checkMachine, problems)
	}
	if len(out.Raises) > 0 {
		env.Progress("the cluster raises sysctls of the Dagger engine's machine, and nothing lowers them again: %s", strings.Join(out.Raises, ", "))
	}
	env.Progress("%s memory, %s free disk, %d CPUs, %d tools as pinned", size(seen.memory), size(seen.disk), seen.cpus, len(out.Tools))
	return out, nil
}

// verifyPreflight looks at the machine again. The tools are those of the earlier
// result: the journal's key holds their digest.
func verifyPreflight(ctx context.Context, env *step.Env, in contract.PreflightInput, _ contract.Preflight) error {
	_, problems, err := look(ctx, env, in)
	if len(problems) > 0 {
		return unmet(CodePreflight, checkMachine, problems)
	}
	return err
}

// look returns what the machine is like, and what is wrong besides the tools.
func look(ctx context.Context, env *step.Env, in contract.PreflightInput) (machine, []problem, error) {
	if err := checkSecrets(ctx, env); err != nil {
		return machine{}, nil, err
	}
	seen, err := observe("/", env.StateDir, slices.Collect(maps.Keys(in.Requirements.Raises))...)
	if err != nil {
		return machine{}, nil, fmt.Errorf("look at the machine: %w", err)
	}
	if _, err := os.Stat(env.Kubeconfig); err == nil {
		in.Requirements.DiskBytes = min(in.Requirements.DiskBytes, contract.DiskReserve)
	}
	return seen, slices.Concat(compareMachine(seen, in.Requirements), checkTLS(env, in.TLS, time.Now())), nil
}

// checkTLS finds what is wrong with the certificate that a user brings: the step that
// uses it comes when the cluster is up.
func checkTLS(env *step.Env, given *contract.UserTLS, now time.Time) []problem {
	if given == nil {
		return nil
	}
	key, err := bounded.File(env.TLSKeyFile, bounded.Written)
	if err != nil {
		return []problem{{fmt.Sprintf("read the certificate's private key: %v", err), certificate.FixInvalid}}
	}
	env.Redact(string(key))
	var out []problem
	for _, err := range certificate.Given([]byte(given.Certificate), key, []byte(given.CA), given.Hosts, now) {
		out = append(out, problem{err.Error(), certificate.FixInvalid})
	}
	return out
}

// checkSecrets tells whether this machine has the key of the deployment's secrets.
// That the store answers was seen before the step began.
func checkSecrets(ctx context.Context, env *step.Env) error {
	if !env.Place.Remote() {
		return nil
	}
	s, err := env.Store(ctx)
	if err != nil {
		return err
	}
	return env.Place.CheckSecrets(ctx, s)
}

// problem is one requirement that is not met.
type problem struct {
	what   string
	remedy string
}

// checkMachine is what preflight does.
const checkMachine = "check the machine"

// unmet is the one fault for all problems.
func unmet(code fault.Code, op string, problems []problem) error {
	var b strings.Builder
	if len(problems) == 1 {
		b.WriteString("1 requirement is not met:")
	} else {
		fmt.Fprintf(&b, "%d requirements are not met:", len(problems))
	}
	for _, p := range problems {
		b.WriteString("\n  " + p.what + "; " + p.remedy)
	}
	return &fault.Fault{
		Code: code, Class: fault.Preflight, Op: op,
		Fix: "correct each of them, then run the same command again", Err: fmt.Errorf("%s", b.String()),
	}
}

// version asks a tool for its version, without a leading v.
func (t toolchain) version(ctx context.Context, tool string) (string, error) {
	argv, ok := versionArgs()[tool]
	if !ok {
		return "", fmt.Errorf("there is no known way to ask it for its version")
	}
	path := t.path(tool)
	out, err := exec.CommandContext(ctx, path, argv...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", path, strings.Join(argv, " "), err)
	}
	version, err := parseVersion(tool, out)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", path, strings.Join(argv, " "), err)
	}
	return version, nil
}

// versionArgs are the arguments that make a tool print its version.
func versionArgs() map[string][]string {
	return map[string][]string{
		"terraform": {"version", "-json"},
		"helm":      {"version", "--template", "{{.Version}}"},
		"kubectl":   {"version", "--client", "-o", "json"},
	}
}

// parseVersion reads what versionArgs made a tool print.
func parseVersion(tool string, out []byte) (string, error) {
	v := strings.TrimSpace(string(out))
	if tool != "helm" { // which prints no JSON
		var doc struct {
			Terraform string `json:"terraform_version"`
			Kubectl   struct {
				Version string `json:"gitVersion"`
			} `json:"clientVersion"`
		}
		if err := json.Unmarshal(out, &doc); err != nil {
			return "", err
		}
		v = cmp.Or(doc.Terraform, doc.Kubectl.Version)
	}
	v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "+") // build metadata is no other version
	if v == "" {
		return "", fmt.Errorf("it prints no version: %q", out)
	}
	return v, nil
}
