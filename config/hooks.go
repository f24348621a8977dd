package config

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/fault"
)

// The workflows that a hook can be bound to.
const (
	Install   = "install"
	Upgrade   = "upgrade"
	Rollback  = "rollback"
	Destroy   = "destroy"
	Test      = "test"
	Configure = "configure"
)

// Workflows returns the names of the workflows that run hooks, in the order in which messages name
// them: those that change what is installed come first.
func Workflows() []string { return []string{Install, Upgrade, Rollback, Destroy, Test, Configure} }

// changing returns the workflows of a hook that names none: those that change what is
// installed.
func changing() []string { return Workflows()[:4] }

// Places of a hook besides "stage/name", one step, and "stage", all steps of one.
const (
	EveryStep     = "*"
	WholeWorkflow = "workflow"
)

// reservedEnv is the prefix of the variables that Slipway sets for hooks.
const reservedEnv = "SLIPWAY_"

// Hook is a command of the user's that runs before or after a step, each step, a
// stage or the whole workflow. Hooks at the same place run in the order of the file.
type Hook struct {
	Name      string               `json:"name" jsonschema:"required,pattern=^[a-z]([a-z0-9-]{0\\,38}[a-z0-9])?$,example=backup" want:"1 to 40 lower-case letters, digits and hyphens, starting with a letter, not ending with a hyphen" jsonschema_description:"Name of the hook, unique: 1 to 40 lower-case letters, digits and hyphens, starting with a letter."`
	Before    string               `json:"before,omitempty" jsonschema:"example=orchestrator/sync" jsonschema_description:"Runs the hook before a step (stage/name), a stage, each step (*) or the whole workflow (workflow). Set either before or after."`
	After     string               `json:"after,omitempty" jsonschema:"example=orchestrator/sync" jsonschema_description:"Runs the hook after a step (stage/name), a stage, each step (*) or the whole workflow (workflow). Set either before or after."`
	Workflows []string             `json:"workflows,omitempty" example:"[\"install\"]"`
	Image     string               `json:"image,omitempty" jsonschema:"example=registry.example.com/tools/backup@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" jsonschema_description:"Image of the hook, by digest; the steps' toolchain (sh, curl, git, kubectl, helm, terraform, slipway) when left out."`
	Run       []string             `json:"run,omitempty" example:"[\"curl\", \"-fsS\", \"https://chat.example.com\"]" jsonschema_description:"Command and arguments. Set either run or script."`
	Script    string               `json:"script,omitempty" jsonschema:"example=kubectl get pods -A" jsonschema_description:"Shell script, run with sh -eu. Set either run or script."`
	Env       map[string]string    `json:"env,omitempty" example:"{\"CHANNEL\": \"ops\"}" jsonschema_description:"Environment variables, without secrets, because the run's record contains them. Names with SLIPWAY_ are reserved."`
	Secrets   map[string]SecretRef `json:"secrets,omitempty" example:"{\"TOKEN\": \"env:CHAT_TOKEN\"}" jsonschema_description:"Environment variables with secrets, each with a reference."`
	Timeout   Duration             `json:"timeout" jsonschema:"example=30s" jsonschema_description:"Time limit, 1s to 24h."`
	Optional  bool                 `json:"optional,omitempty" example:"true" jsonschema_description:"Whether a failure is only a warning."`
	Always    bool                 `json:"always,omitempty" example:"true" jsonschema_description:"With after: whether the hook also runs if the step or workflow did not succeed; SLIPWAY_STATUS has the outcome."`

	Kubeconfig bool `json:"kubeconfig,omitempty" example:"true" jsonschema_description:"Whether the hook gets the administrator's access to the cluster, in the file that KUBECONFIG names."`
}

// SetDefaults sets the defaults of the hook.
func (h *Hook) SetDefaults() { h.Timeout = Duration(5 * time.Minute) }

// Target returns what the hook is bound to, "stage/name", "stage", EveryStep or WholeWorkflow,
// and whether it runs before that.
func (h *Hook) Target() (at string, before bool) {
	if h.Before != "" {
		return h.Before, true
	}
	return h.After, false
}

// Command returns what the hook runs: command and arguments.
func (h *Hook) Command() []string {
	if h.Script != "" {
		return []string{"sh", "-eu", "-c", h.Script}
	}
	return slices.Clone(h.Run)
}

// HooksOf returns the hooks of a workflow in the order of the file. Those on a step
// that the workflow does not have are among them.
func (c *Config) HooksOf(workflow string) []Hook {
	var out []Hook
	for _, h := range c.Hooks {
		if slices.Contains(h.workflows(), workflow) {
			out = append(out, h)
		}
	}
	return out
}

// workflows returns those that run the hook.
func (h *Hook) workflows() []string {
	if len(h.Workflows) == 0 {
		return changing()
	}
	return h.Workflows
}

// placeWant describes what a hook can be bound to if the steps are not known.
const placeWant = `a step (stage/name), a stage, "*" for each step, or workflow`

// imageName matches an image without its digest.
const imageName = `[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?`

var (
	stepRE   = regexp.MustCompile(`^[a-z][a-z0-9-]*(/[a-z][a-z0-9-]*)?$`) // or a stage
	envRE    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	imageRE  = regexp.MustCompile(`^` + imageName + `@sha256:[0-9a-f]{64}$`)
	noDigest = regexp.MustCompile(`^` + imageName + `$`)
)

// hookProblems validates the hooks, without lines. steps are the names of the
// steps of each workflow; nil leaves them unchecked.
func (c *Config) hookProblems(steps map[string][]string) []Problem {
	l := new(document.List)
	first := map[string]int{}
	for i := range c.Hooks {
		h := &c.Hooks[i]
		if reflect.ValueOf(h).Elem().IsZero() {
			continue // the item could not be decoded, which has been reported
		}
		field := fmt.Sprintf("hooks[%d]", i)
		l.Check(field, h)
		if other, ok := first[h.Name]; ok {
			l.Add(field+".name", fmt.Sprintf("%s, the name of hooks[%d]", document.Quote(h.Name), other), "a name of its own")
		} else {
			first[h.Name] = i
		}
		h.placeProblems(l, field, steps)
		h.commandProblems(l, field)
		h.envProblems(l, field)
		h.Timeout.problem(l, field+".timeout")
	}
	return *l
}

// CheckHooks checks what the hooks are bound to once all steps of each workflow are known,
// "stage/name": those of the platform release's components among them. Its error is as
// Load's.
func (c *Config) CheckHooks(steps map[string][]string) error {
	if problems := c.hookProblems(steps); len(problems) > 0 {
		return invalid(c.file, c.doc.Merge(problems...))
	}
	return nil
}

// placeProblems checks what the hook is bound to.
func (h *Hook) placeProblems(l *document.List, field string, steps map[string][]string) {
	known := true // the workflows
	for i, w := range h.Workflows {
		at := fmt.Sprintf("%s.workflows[%d]", field, i)
		switch {
		case !slices.Contains(Workflows(), w):
			l.Add(at, document.Quote(w), document.OneOf(Workflows()...))
			known = false
		case slices.Contains(h.Workflows[:i], w):
			l.Add(at, document.Quote(w)+" again", "each workflow once")
		}
	}
	if h.Kubeconfig && len(h.Workflows) == 1 && h.Workflows[0] == Configure {
		l.Add(field+".kubeconfig", "true for "+Configure, "it left out: configuring has no cluster")
	}
	if h.Always && h.Before != "" {
		l.Add(field+".always", "true with before", "it with after: a hook before something knows no outcome")
	}
	switch {
	case h.Before != "" && h.After != "":
		l.Add(field+".after", "after besides before", "one of them; a hook for each place")
	case h.Before != "":
		h.stepProblem(l, field+".before", h.Before, known, steps)
	case h.After != "":
		h.stepProblem(l, field+".after", h.After, known, steps)
	default:
		l.Follow(field+".after", field+".before", "nothing", placeWant+"; or set after")
	}
}

// stepProblem checks that at is a place of the workflows that the hook names,
// or of one workflow when it names none.
func (h *Hook) stepProblem(l *document.List, field, at string, known bool, steps map[string][]string) {
	switch {
	case at == WholeWorkflow:
	case slices.Contains(h.Workflows, Configure):
		want := WholeWorkflow + ": configuring has no steps"
		if slices.ContainsFunc(h.Workflows, func(w string) bool { return w != Configure && slices.Contains(Workflows(), w) }) {
			want += "; or a hook of its own for " + Configure
		}
		l.Add(field, document.Quote(at)+" for "+Configure, want)
	case at == EveryStep:
	case steps == nil && !stepRE.MatchString(at):
		l.Add(field, document.Quote(at), placeWant)
	case steps == nil || !known:
	case len(h.Workflows) == 0:
		if !slices.ContainsFunc(changing(), func(w string) bool { return hasPlace(steps[w], at) }) {
			l.Add(field, document.Quote(at), allowedPlaces(changing(), steps))
		}
	default:
		without := func(w string) bool { return !hasPlace(steps[w], at) }
		if i := slices.IndexFunc(h.Workflows, without); i >= 0 {
			l.Add(field, fmt.Sprintf("%s, which is no step and no stage of %s", document.Quote(at), h.Workflows[i]), allowedPlaces(h.Workflows, steps))
		}
	}
}

// hasPlace reports whether at is one of steps, or the stage of one. "stage/*" is any step
// of a stage.
func hasPlace(steps []string, at string) bool {
	stage, _, isStep := strings.Cut(at, "/")
	return slices.ContainsFunc(steps, func(s string) bool {
		return s == at || strings.HasPrefix(s, at+"/") || isStep && s == stage+"/*"
	})
}

// allowedPlaces lists what a hook of these workflows can be bound to.
func allowedPlaces(workflows []string, steps map[string][]string) string {
	out, last := `workflow, "*" for each step, a stage, or a step`, ""
	for _, w := range workflows {
		if list := strings.Join(steps[w], ", "); list != "" && list != last {
			out += " of " + w + ": " + list + ";"
			last = list
		}
	}
	return strings.TrimSuffix(out, ";")
}

// commandProblems checks what the hook runs, and in which image.
func (h *Hook) commandProblems(l *document.List, field string) {
	switch {
	case len(h.Run) > 0 && h.Script != "":
		l.Add(field+".script", "script besides run", "one of them")
	case len(h.Run) == 0 && h.Script == "":
		l.Follow(field+".script", field+".run", "nothing", "a command with its arguments, [curl, -fsS, \"https://…\"]; or set script")
	case h.Script == "" && h.Run[0] == "":
		l.Add(field+".run[0]", "nothing", "a command")
	}
	switch {
	case h.Image == "" || imageRE.MatchString(h.Image):
	case noDigest.MatchString(h.Image):
		l.Add(field+".image", "an image without its digest",
			fmt.Sprintf("%s@sha256:<64 hex digits>; docker buildx imagetools inspect %s shows them", h.Image, fault.Quote(h.Image)))
	default:
		l.Add(field+".image", document.Quote(h.Image), "an image by digest such as registry.example.com/tools/backup@sha256:<64 hex digits>")
	}
}

// envProblems checks the variables. It shows no values, as users may have put a secret in
// place of a reference.
func (h *Hook) envProblems(l *document.List, field string) {
	name := func(field, key string) {
		switch {
		case !envRE.MatchString(key):
			l.Add(field, document.QuoteKey(key), "the name of a variable: letters, digits and underscores, not starting with a digit")
		case strings.HasPrefix(strings.ToUpper(key), reservedEnv):
			l.Add(field, "a name that starts with "+reservedEnv, "another one: these are Slipway's own")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(h.Env)) {
		name(field+".env."+key, key)
	}
	for _, key := range slices.Sorted(maps.Keys(h.Secrets)) {
		at := field + ".secrets." + key
		name(at, key)
		if _, twice := h.Env[key]; twice {
			l.Add(at, "a variable that is in env too", "it in one of them")
		}
		h.Secrets[key].problem(l, at, "secret")
	}
}

// JSONSchemaExtend adds the workflows, and which fields exclude each other.
func (Hook) JSONSchemaExtend(s *jsonschema.Schema) {
	if list, ok := s.Properties.Get("workflows"); ok {
		for _, name := range Workflows() {
			list.Items.Enum = append(list.Items.Enum, name)
		}
		list.Description = fmt.Sprintf("Workflows that run the hook: %s; when left out, %s. With %s, set before or after to workflow.",
			strings.Join(Workflows(), ", "), strings.Join(changing(), ", "), Configure)
	}
	either := func(a, b string) *jsonschema.Schema {
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Required: []string{a}}, {Required: []string{b}}}}
	}
	s.AllOf = []*jsonschema.Schema{either("before", "after"), either("run", "script")}
	if image, ok := s.Properties.Get("image"); ok {
		image.Pattern = imageRE.String()
	}
	if place, ok := s.Properties.Get("before"); ok {
		place.Pattern = `^(\*|workflow|` + strings.Trim(stepRE.String(), "^$") + `)$`
		if after, ok := s.Properties.Get("after"); ok {
			after.Pattern = place.Pattern
		}
	}
}
