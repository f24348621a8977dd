package platform

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/slipway-sh/slipway/config"
)

// Await is a gate and how long it may take to open. Exactly one of the gates is set.
type Await struct {
	Rollout   string          `json:"rollout,omitempty" is:"object"`      // rollout of a Deployment, StatefulSet or DaemonSet: "apps/v1/Deployment namespace/name"
	Job       string          `json:"job,omitempty" is:"reference"`       // completed Job: "namespace/name"
	Endpoint  string          `json:"endpoint,omitempty" is:"ourService"` // Service with a ready endpoint: "namespace/name:port"
	HTTP      *HTTPGate       `json:"http,omitempty"`                     // Service that responds
	Condition *ConditionGate  `json:"condition,omitempty"`                // condition of an object
	CEL       *CELGate        `json:"cel,omitempty"`                      // expression on an object
	Synced    string          `json:"synced,omitempty"`                   // name of an app that must be Synced and Healthy
	Deadline  config.Duration `json:"deadline,omitempty" is:"deadline"`   // time limit for the gate, 1s to 24h; default 5m
}

// HTTPGate is open while a Service of the platform responds as described. It is asked
// through the API server, so that it need not be reachable from outside of the cluster.
type HTTPGate struct {
	Service  string `json:"service" is:"ourService"`      // Service to call: "namespace/name:port"
	TLS      bool   `json:"tls,omitempty"`                // whether to use HTTPS, without verifying the certificate
	Path     string `json:"path,omitempty" is:"urlPath"`  // path of the request; default "/"
	Status   int    `json:"status,omitempty" is:"status"` // expected status; default 200
	Contains string `json:"contains,omitempty"`           // text that the body must contain
}

// ConditionGate is open while an object has a condition.
type ConditionGate struct {
	Object string `json:"object" is:"object"`                              // object: "apps/v1/Deployment namespace/name", or without namespace
	Type   string `json:"type" least:"the condition's type such as Ready"` // type of the condition, such as "Programmed"
	Status string `json:"status,omitempty"`                                // required status of the condition; default "True"
}

// CELGate is open while an expression in the Common Expression Language, with the object
// as variable object, is true.
type CELGate struct {
	Object     string `json:"object" is:"object"`  // object: "apps/v1/Deployment namespace/name", or without namespace
	Expression string `json:"expression" is:"cel"` // expression in the Common Expression Language: "object.status.ready == true"
}

// Object names an object in a cluster.
type Object struct {
	APIVersion string // "apps/v1"
	Kind       string
	Namespace  string // empty for an object of the cluster's own scope
	Name       string
}

// String returns the object as ParseObject reads it.
func (o Object) String() string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return o.APIVersion + "/" + o.Kind + " " + name
}

var objectRE = regexp.MustCompile(`^((?:[a-z0-9.-]+/)?v[a-z0-9]+)/([A-Z][A-Za-z0-9]*) (?:([a-z0-9-]+)/)?([a-z0-9][a-z0-9.:-]*)$`)

// ParseObject reads "apps/v1/Deployment namespace/name", without the namespace for an
// object of the cluster's own scope.
func ParseObject(s string) (Object, error) {
	m := objectRE.FindStringSubmatch(s)
	if m == nil {
		return Object{}, fmt.Errorf("object %q: want apiVersion/Kind namespace/name", s)
	}
	return Object{APIVersion: m[1], Kind: m[2], Namespace: m[3], Name: m[4]}, nil
}

// Describe says what the gate is about: "http identity/dex:5556/healthz".
func (a Await) Describe() string {
	switch {
	case a.Rollout != "":
		return "rollout of " + a.Rollout
	case a.Job != "":
		return "job " + a.Job
	case a.Endpoint != "":
		return "endpoint of " + a.Endpoint
	case a.HTTP != nil:
		return "http " + a.HTTP.Service + a.HTTP.Path
	case a.Condition != nil:
		return fmt.Sprintf("%s=%s of %s", a.Condition.Type, a.Condition.Status, a.Condition.Object)
	case a.CEL != nil:
		return a.CEL.Expression + " of " + a.CEL.Object
	case a.Synced != "":
		return "app " + a.Synced
	}
	return "nothing"
}

// gates names every gate, and those of a that are set.
func (a Await) gates() (all, set []string) {
	for f, value := range reflect.ValueOf(a).Fields() {
		name := jsonName(f)
		if name == "deadline" {
			continue
		}
		if all = append(all, name); !value.IsZero() {
			set = append(set, name)
		}
	}
	return all, set
}

// parseName splits "namespace/name".
func parseName(s string) (namespace, name string, ok bool) {
	namespace, name, ok = strings.Cut(s, "/")
	return namespace, name, ok && nameRE.MatchString(namespace) && objectNameRE.MatchString(name)
}

var objectNameRE = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

// CompileCEL compiles the expression of a gate: one of true or false, with the object as
// variable object.
func CompileCEL(expression string) (cel.Program, error) {
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.OptionalTypes())
	if err != nil {
		return nil, fmt.Errorf("prepare the expression language: %w", err)
	}
	ast, issues := env.Compile(expression)
	if all := issues.Errors(); len(all) > 0 {
		return nil, inLine(all[0])
	}
	if out := ast.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("it is %s, not true or false", out)
	}
	return env.Program(ast, cel.CostLimit(1_000_000))
}

// inLine is what is wrong with an expression, without the lists and pictures that go with
// it.
func inLine(e *cel.Error) error {
	message, _, _ := strings.Cut(e.Message, " expecting ")
	return fmt.Errorf("character %d: %s", e.Location.Column()+1, strings.TrimSuffix(message, " (in container '')"))
}
