package preorchestrator

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"helm.sh/helm/v3/pkg/chartutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/config/certificate"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

const (
	giteaPort      = 443                      // of its Service
	usable         = 2 * time.Minute          // how long the git server may take to answer once its pods are ready
	certAnnotation = "slipway.sh/certificate" // annotation of the pods: fingerprint they were started with
	giteaChart     = "gitea"
)

func runGitea(ctx context.Context, env *step.Env, in contract.GiteaInput) (contract.Gitea, error) {
	r, c, err := open(env)
	if err != nil {
		return contract.Gitea{}, err
	}
	i := slices.IndexFunc(r.Components, func(c platform.Component) bool {
		return c.Kind == platform.Bootstrap && c.Name == giteaChart && c.Path != ""
	})
	if i < 0 {
		return contract.Gitea{}, badChart(giteaChart, errors.New("the platform release has no bootstrap component of that name with a path"))
	}
	values, err := giteaValues(in, r.Components[i])
	if err != nil {
		return contract.Gitea{}, err
	}
	rel, err := openRelease(c, env.Logger, env.Kubeconfig, giteaChart, gitserver.Namespace,
		filepath.Join(env.PlatformDir, filepath.FromSlash(r.Components[i].Path)), values)
	if err != nil {
		return contract.Gitea{}, err
	}
	change, err := rel.converge(ctx)
	if err != nil {
		return contract.Gitea{}, err
	}
	env.Progress("chart %s", change)
	g := &gitea{client: c, env: env, in: in}
	return g.finish(ctx, rel)
}

// giteaValues are the values that the chart gets.
func giteaValues(in contract.GiteaInput, component platform.Component) (map[string]any, error) {
	images := map[string]any{}
	for _, name := range component.Images {
		ref, err := image(in.Images, name)
		if err != nil {
			return nil, err
		}
		images[name] = ref
	}
	values := map[string]any{
		"images":       images,
		"host":         PublicHost(in.Domain),
		"scale":        in.Scale,
		"storageClass": in.StorageClass,
		"tls":          map[string]any{"secretName": giteaTLS},
	}
	if in.Values == nil {
		return values, nil
	}
	var own map[string]any
	if err := json.Unmarshal(in.Values, &own); err != nil {
		return nil, fmt.Errorf("read the values of component %s: %w", component.Name, err)
	}
	return chartutil.CoalesceTables(own, values), nil // the first one wins
}

type gitea struct {
	client *kube.Client
	env    *step.Env
	in     contract.GiteaInput
}

// finish waits for the pods, verifies the server by use and registers it with
// Argo CD.
func (g *gitea) finish(ctx context.Context, rel *chartRelease) (contract.Gitea, error) {
	objs, err := rel.objects(ctx)
	if err != nil {
		return contract.Gitea{}, err
	}
	if _, err := g.client.WaitRollouts(ctx, objs); err != nil {
		return contract.Gitea{}, err
	}
	out := contract.Gitea{ClusterURL: "https://" + g.in.GitHost}
	out.URL = "https://" + PublicHost(g.in.Domain)
	if err := g.serves(ctx, g.in.Certificate, objs); err != nil {
		return contract.Gitea{}, err
	}
	if out.Address, err = g.client.WaitAddress(ctx, gitserver.Namespace, gitserver.Service, giteaPort); err != nil {
		return contract.Gitea{}, err
	}
	user, err := gitserver.Account(ctx, g.client, out.GitServer, gitserver.User, g.env.Redact)
	if err != nil {
		return contract.Gitea{}, err
	}
	admin, err := gitserver.Account(ctx, g.client, out.GitServer, gitserver.Admin, g.env.Redact)
	if err != nil {
		return contract.Gitea{}, err
	}
	out.Repository = user.Username + "/" + gitops
	if err := g.use(ctx, admin, user); err != nil {
		return contract.Gitea{}, err
	}
	if err := g.register(ctx, out, user); err != nil {
		return contract.Gitea{}, err
	}
	g.env.Progress("%s answers on %s, %s can log in", out.URL, out.Address, user.Username)
	return out, nil
}

// serves makes sure that the pods show the certificate that their Secret holds:
// the server reads it when it starts.
func (g *gitea) serves(ctx context.Context, fingerprint string, objs []*unstructured.Unstructured) error {
	seen, err := g.shown(ctx)
	if err != nil || seen == fingerprint {
		return err
	}
	g.env.Progress("starting the pods again, they show another certificate")
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{certAnnotation: fingerprint}},
	}}})
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	for _, o := range objs {
		if o.GetKind() != "Deployment" {
			continue
		}
		err := g.client.Retry(ctx, "restart "+o.GetName(), func(ctx context.Context) error {
			_, err := g.client.Kubernetes.AppsV1().Deployments(gitserver.Namespace).Patch(ctx, o.GetName(), types.StrategicMergePatchType, patch,
				metav1.PatchOptions{FieldManager: kube.FieldManager})
			return err
		})
		if err != nil {
			return err
		}
	}
	if _, err := g.client.WaitRollouts(ctx, objs); err != nil {
		return err
	}
	if seen, err = g.shown(ctx); err != nil || seen == fingerprint {
		return err
	}
	return badServer("look at its certificate", fmt.Errorf("it shows %.12s…, not %.12s…", seen, fingerprint))
}

// shown is the fingerprint of the certificate that the server shows. It is not
// verified here, but compared with the one that it must show: a server that was
// started with an earlier one of another CA is to be found out, not waited for.
// Whoever uses the server verifies it.
func (g *gitea) shown(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, usable)
	defer cancel()
	fingerprint := ""
	err := g.client.WaitFor(ctx, fmt.Sprintf("the git server to answer on port %d of the load balancer of Service %s/%s", giteaPort, gitserver.Namespace, gitserver.Service), kube.Poll, func(ctx context.Context) (bool, string, error) {
		// The address is read each time: it changes when the cluster was started again.
		address, err := g.client.Address(ctx, gitserver.Namespace, gitserver.Service, giteaPort)
		if err != nil || address == "" {
			return false, "the load balancer has no address", err
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		d := tls.Dialer{Config: &tls.Config{
			InsecureSkipVerify: true, // see above
			ServerName:         PublicHost(g.in.Domain), MinVersion: tls.VersionTLS12,
		}}
		conn, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			return false, err.Error(), nil
		}
		fingerprint = certificate.Fingerprint(conn.(*tls.Conn).ConnectionState().PeerCertificates[0])
		return true, "", conn.Close()
	})
	return fingerprint, err
}

// use verifies by use: both accounts log in, the repository is there, and a
// stranger cannot sign up. The server takes its time to check a password, so that
// both accounts are used at the same time.
func (g *gitea) use(ctx context.Context, admin, user *gitserver.Server) error {
	ctx, cancel := context.WithTimeout(ctx, usable)
	defer cancel()
	var asUser, asAdmin error
	var wg sync.WaitGroup
	wg.Go(func() {
		if asUser = g.login(ctx, user); asUser != nil {
			return
		}
		if _, err := user.EnsureRepository(ctx, gitops, "The platform, as Argo CD installs it"); err != nil {
			asUser = badServer("make the repository "+gitops, err)
		}
	})
	wg.Go(func() {
		if asAdmin = g.login(ctx, admin); asAdmin == nil {
			asAdmin = refusesStrangers(ctx, admin)
		}
	})
	wg.Wait()
	return errors.Join(asUser, asAdmin)
}

// login waits until the account of s can log in.
func (g *gitea) login(ctx context.Context, s *gitserver.Server) error {
	return g.client.WaitFor(ctx, s.Username+" to log in on "+s.URL, kube.Poll, func(ctx context.Context) (bool, string, error) {
		login, err := s.User(ctx)
		if err != nil {
			return false, err.Error(), nil
		}
		return login == s.Username, "logged in as " + login, nil
	})
}

func refusesStrangers(ctx context.Context, admin *gitserver.Server) error {
	err := admin.CheckSignUpRefused(ctx)
	if errors.Is(err, gitserver.ErrSignUpOpen) {
		return &fault.Fault{
			Code: CodeSignUp, Class: fault.Step, Op: "try to sign up on the git server as a stranger", Err: err,
			Fix: "set DISABLE_REGISTRATION in the chart's app.ini, then run again: slipway install",
		}
	}
	if err != nil {
		return badServer("try to sign up as a stranger", err)
	}
	return nil
}

func badServer(op string, err error) error {
	return gitFault(CodeGitServer, op+" on the git server", err)
}

func gitFault(code fault.Code, op string, err error) error {
	const fix = "look at its log: kubectl logs -n " + gitserver.Namespace + " deploy/" + gitserver.Service
	return &fault.Fault{Code: code, Class: step.ClassOf(err), Op: op, Fix: fix, Err: err}
}

// register tells Argo CD how it gets at the GitOps tree, and at other
// repositories of the same user.
func (g *gitea) register(ctx context.Context, out contract.Gitea, user *gitserver.Server) error {
	account := map[string][]byte{
		"type": []byte("git"), "username": []byte(user.Username), "password": user.Password.Reveal(),
	}
	for _, w := range []struct{ name, kind, url string }{
		{argoRepository, "repository", out.CloneURL(out.Repository)},
		{argoCredentials, "repo-creds", out.ClusterURL + "/" + user.Username + "/"},
	} {
		data := maps.Clone(account)
		data["url"] = []byte(w.url)
		all := kube.Labels(g.env.Deployment)
		all["argocd.argoproj.io/secret-type"] = w.kind
		if err := writeSecret(ctx, g.client, argo.Namespace, w.name, corev1.SecretTypeOpaque, all, data); err != nil {
			return err
		}
	}
	return nil
}
