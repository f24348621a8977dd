package preorchestrator

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"path"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// generated stands in a plan for what is made anew in each.
const generated = "generated"

func runSecrets(ctx context.Context, env *step.Env, in contract.SecretsInput) (contract.Secrets, error) {
	r, c, err := env.Open()
	if err != nil {
		return contract.Secrets{}, err
	}
	want := append(r.SecretsGiven(in.UserSecrets), platform.Secret{
		Name: kube.SaltSecret, Namespace: kube.SystemNamespace,
		Keys: []platform.SecretKey{{Key: kube.SaltKey, Generate: platform.Token, Length: platform.DefaultLength}},
	})
	s := &secrets{client: c, deployment: env.Deployment, in: in, redact: env.Redact, have: map[string]*corev1.Secret{}, given: map[string][]byte{}, declared: r.Secrets}
	s.made = func(value string) { env.Plan.Label(value, generated) }
	for _, name := range in.UserSecrets {
		if s.given[name], err = userSecret(env, name); err != nil {
			return contract.Secrets{}, err
		}
	}
	out, err := s.ensure(ctx, want)
	if err == nil {
		env.Progress("%s", secretsLine(out))
	}
	return out, err
}

// secretsLine counts Secrets for people: one that was there and has got a value, a new one
// that the release rotates for example, has changed.
func secretsLine(out contract.Secrets) string {
	var changed []string
	for _, key := range out.Added {
		changed = append(changed, path.Dir(key))
	}
	line := fmt.Sprintf("%s, %d of them new", counted(theirs(out.Names), "secret"), theirs(out.Created))
	if n := theirs(slices.Compact(changed)); n > 0 { // Added has the keys of each together
		line += fmt.Sprintf(", %d changed", n)
	}
	return line
}

// userSecret reads a secret of the configuration. One of a single line, such as a password
// that an editor has saved, is without the end of the line.
func userSecret(env *step.Env, name string) ([]byte, error) {
	value, err := bounded.File(filepath.Join(env.UserSecretsDir, name), bounded.Written)
	if err != nil {
		return nil, fmt.Errorf("read the secret %s of the configuration: %w", name, err)
	}
	if line := bytes.TrimRight(value, "\r\n"); !bytes.ContainsRune(line, '\n') {
		value = line
	}
	return value, nil
}

// secrets makes the Secrets of a release. It overwrites only values from the configuration, which are the
// user's to change, and literals, which are the release's.
type secrets struct {
	client     *kube.Client
	deployment string
	in         contract.SecretsInput
	redact     func(string) // told every value that is made or read
	made       func(string) // told every value that is made; may be nil
	have       map[string]*corev1.Secret
	given      map[string][]byte // secrets of the configuration, by name
	declared   []platform.Secret // by the release
}

// ensure makes sure of the Secrets. One without a key is not made.
func (s *secrets) ensure(ctx context.Context, want []platform.Secret) (contract.Secrets, error) {
	want = slices.DeleteFunc(slices.Clone(want), func(w platform.Secret) bool { return len(w.Keys) == 0 })
	var out contract.Secrets
	var fixed []error
	for _, w := range want {
		name := w.Namespace + "/" + w.Name
		out.Names = append(out.Names, name)
		found, err := s.client.Secret(ctx, w.Namespace, w.Name)
		if err != nil {
			return contract.Secrets{}, err
		}
		if found == nil {
			out.Created = append(out.Created, name)
		} else {
			fixed = append(fixed, sameType(found, corev1.SecretType(w.Type)))
		}
		s.have[name] = found
	}
	if err := errors.Join(fixed...); err != nil {
		return contract.Secrets{}, err
	}
	plan, err := s.plan(want)
	if err != nil {
		return contract.Secrets{}, &fault.Fault{
			Code: CodeSecret, Class: fault.Step, Op: "make the platform's secrets", Err: err,
			Fix: "correct the secrets in platform.yaml, then run the same command again",
		}
	}
	for _, w := range want {
		name := w.Namespace + "/" + w.Name
		if err := s.write(ctx, w, plan[name]); err != nil {
			return contract.Secrets{}, err
		}
		if s.have[name] != nil {
			for _, key := range slices.Sorted(maps.Keys(plan[name])) {
				out.Added = append(out.Added, name+"/"+key)
			}
		}
	}
	slices.Sort(out.Names)
	slices.Sort(out.Created)
	return out, nil
}

// plan is, for each secret, the values of the keys that it lacks; copies come last.
func (s *secrets) plan(want []platform.Secret) (map[string]map[string][]byte, error) {
	plan := map[string]map[string][]byte{}
	for _, copies := range []bool{false, true} {
		for _, w := range want {
			name := w.Namespace + "/" + w.Name
			if plan[name] == nil {
				plan[name] = map[string][]byte{}
			}
			for _, k := range w.Keys {
				if copies != (k.Generate == platform.CopyOf) {
					continue
				}
				if v, stays := s.stays(name, k); stays {
					s.hide(k, v)
					continue
				}
				v, err := s.fresh(plan, k)
				if err != nil {
					return nil, fmt.Errorf("%s/%s: %w", name, k.Key, err)
				}
				s.hide(k, v)
				plan[name][k.Key] = v
			}
		}
	}
	return plan, nil
}

// stays is the value that a key has in the cluster, and whether it is to have that.
func (s *secrets) stays(name string, k platform.SecretKey) ([]byte, bool) {
	o := s.have[name]
	if o == nil {
		return nil, false
	}
	v, has := o.Data[k.Key]
	given, isGiven := s.givenFor(k)
	return v, has && (!isGiven || bytes.Equal(v, given)) && !s.due(o, k)
}

// fresh is the value that a key gets: a given, copied or generated one.
func (s *secrets) fresh(plan map[string]map[string][]byte, k platform.SecretKey) ([]byte, error) {
	if v, is := s.givenFor(k); is {
		return v, nil
	}
	if k.Generate == platform.CopyOf {
		secret, key := path.Dir(k.From), path.Base(k.From)
		if v, is := plan[secret][key]; is {
			return v, nil
		}
		if o := s.have[secret]; o != nil && o.Data[key] != nil {
			return o.Data[key], nil
		}
		return nil, fmt.Errorf("it is a copy of %s, which is not there", k.From)
	}
	v, err := s.value(k)
	if err == nil && s.made != nil {
		s.made(string(v))
	}
	return v, err
}

// givenFor is the value that the configuration, or the release as a literal, gives for a key.
func (s *secrets) givenFor(k platform.SecretKey) (v []byte, ok bool) {
	switch k.Generate {
	case platform.Given:
		v, ok = s.given[k.From]
	case platform.Literal:
		v, ok = s.literal(k), true
	case platform.CopyOf: // it follows what it is a copy of
		if from := s.source(k); from.Generate != platform.CopyOf {
			return s.givenFor(from)
		}
	default:
		v, ok = s.given[k.Give]
	}
	return v, ok
}

// hide keeps generated and given values, and so their copies, out of the logs.
func (s *secrets) hide(k platform.SecretKey, v []byte) {
	if (k.Generate == platform.Password || k.Generate == platform.Token || k.Generate == platform.Given) && s.redact != nil {
		s.redact(string(v))
	}
}

func (s *secrets) value(k platform.SecretKey) ([]byte, error) {
	n := cmp.Or(k.Length, platform.DefaultLength)
	switch k.Generate {
	case platform.Password:
		return password(n)
	case platform.Token:
		return token(n)
	}
	return nil, fmt.Errorf("a value cannot be made as %q", k.Generate)
}

func (s *secrets) literal(k platform.SecretKey) []byte {
	return []byte(platform.Fill(k.Value, map[string]string{
		"domain": s.in.Domain, "deployment": s.deployment, "adminEmail": s.in.AdminEmail,
	}))
}

// write makes the Secret, or adds the keys and labels that it does not have. It replaces given keys and
// those that a newer release rotates, and no other key that is there by now.
func (s *secrets) write(ctx context.Context, w platform.Secret, values map[string][]byte) error {
	api := s.client.Kubernetes.CoreV1().Secrets(w.Namespace)
	replaced := func(o *corev1.Secret, key string) bool {
		return slices.ContainsFunc(w.Keys, func(k platform.SecretKey) bool {
			_, given := s.givenFor(k)
			return k.Key == key && (given || s.due(o, k))
		})
	}
	all := labels.Merge(w.Labels, kube.Labels(s.deployment))
	return s.client.Retry(ctx, "write secret "+w.Namespace+"/"+w.Name, func(ctx context.Context) error {
		for {
			o, err := api.Get(ctx, w.Name, metav1.GetOptions{})
			fresh := apierrors.IsNotFound(err) && s.have[w.Namespace+"/"+w.Name] == nil
			if fresh {
				o = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: w.Name, Namespace: w.Namespace}, Type: cmp.Or(corev1.SecretType(w.Type), corev1.SecretTypeOpaque)}
			} else if err != nil {
				return err
			}
			changed := fresh
			for k, v := range values {
				if was, ok := o.Data[k]; !ok || replaced(o, k) && !bytes.Equal(was, v) {
					if o.Data == nil {
						o.Data = map[string][]byte{}
					}
					o.Data[k], changed = v, true
				}
			}
			if !holds(o.Labels, all) {
				o.Labels, changed = labels.Merge(o.Labels, all), true
			}
			if !changed {
				return nil
			}
			if err := s.noteRotations(o, w.Keys); err != nil {
				return err
			}
			if fresh {
				_, err = api.Create(ctx, o, metav1.CreateOptions{FieldManager: kube.FieldManager})
			} else {
				_, err = api.Update(ctx, o, metav1.UpdateOptions{FieldManager: kube.FieldManager})
			}
			if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) || ctx.Err() != nil { // else somebody wrote to it in between
				return err
			}
		}
	})
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
)

// password is n letters and digits, among them a lower-case letter, an upper-case letter and a digit.
func password(n int) ([]byte, error) {
	if n < 3 {
		return nil, errors.New("a password has at least 3 characters")
	}
	alphabet := lower + upper + digits
	for {
		b := make([]byte, n)
		for i := range b {
			j, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet))))
			if err != nil {
				return nil, fmt.Errorf("read random numbers: %w", err)
			}
			b[i] = alphabet[j.Int64()]
		}
		s := string(b)
		if strings.ContainsAny(s, lower) && strings.ContainsAny(s, upper) && strings.ContainsAny(s, digits) {
			return b, nil
		}
	}
}

// token is n lower-case hexadecimal digits.
func token(n int) ([]byte, error) {
	b := make([]byte, (n+1)/2)
	if _, err := rand.Read(b); err != nil {
		return nil, fmt.Errorf("read random numbers: %w", err)
	}
	return []byte(hex.EncodeToString(b)[:n]), nil
}
