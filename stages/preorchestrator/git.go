package preorchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/step"
)

// usable is how long the git server may take to answer once its pods are ready.
const usable = 2 * time.Minute

// runGit registers the platform's git server with Argo CD, after it has verified that accounts log in,
// strangers cannot sign up, and Argo CD may read the repository of the tree.
func runGit(ctx context.Context, env *step.Env, in contract.GitInput) (contract.Git, error) {
	r, c, err := env.Open()
	if err != nil {
		return contract.Git{}, err
	}
	server := r.GitServer()
	if server == nil {
		return contract.Git{}, errors.New("the platform release has no git server")
	}
	if in.GitHost == "" {
		return contract.Git{}, &fault.Fault{
			Code: gitserver.CodeServer, Class: fault.Step, Op: "choose the host of the git server",
			Err: fmt.Errorf("no certificate of the platform is for one of its hosts: %s", strings.Join(server.Hosts, ", ")),
			Fix: "add a host that the certificate is for to gitops.server.hosts in platform.yaml, then run the same command again",
		}
	}
	g := &git{client: c, env: env, server: server, in: in}
	out := contract.Git{ClusterURL: "https://" + in.GitHost, Repository: server.Repository, Writer: server.Accounts.Writer}
	out.URL = out.ClusterURL
	for _, h := range server.Hosts { // the one that people use
		if strings.Contains(h, "{"+platform.FillDomain+"}") {
			out.URL = "https://" + platform.Fill(h, map[string]string{platform.FillDomain: in.Domain})
		}
	}
	namespace, name, port, err := platform.ParseService(server.Service)
	if err != nil {
		return out, err
	}
	if out.Address, err = readiness.WaitAddress(ctx, c, namespace, name, port); err != nil {
		return out, err
	}
	if err := g.open(ctx, out.GitServer); err != nil {
		return out, err
	}
	if err := g.use(ctx); err != nil {
		return out, err
	}
	if err := g.register(ctx, out, r.Engine().Namespace); err != nil {
		return out, err
	}
	env.Progress("%s answers on %s, %s can push and %s can read", out.URL, out.Address, g.writer.Username, g.reader.Username)
	return out, nil
}

type git struct {
	client *kube.Client
	env    *step.Env
	server *platform.GitServer
	in     contract.GitInput

	administrator, writer, reader *gitserver.Server
}

// open reads the accounts.
func (g *git) open(ctx context.Context, at contract.GitServer) (err error) {
	for _, a := range []struct {
		secret string
		to     **gitserver.Server
	}{
		{g.server.Accounts.Administrator, &g.administrator}, {g.server.Accounts.Writer, &g.writer}, {g.server.Accounts.Reader, &g.reader},
	} {
		if *a.to, err = gitserver.Account(ctx, g.client, at, a.secret, g.env.Redact); err != nil {
			return err
		}
	}
	owner, _, _ := strings.Cut(g.server.Repository, "/")
	if owner != g.writer.Username {
		return g.bad(gitserver.CodeServer, "open the repository "+g.server.Repository,
			fmt.Errorf("it is not of the account that pushes, %s (gitops.server in platform.yaml)", g.writer.Username))
	}
	return nil
}

// use uses all accounts at the same time: checking a password takes the server long.
func (g *git) use(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, usable)
	defer cancel()
	var asWriter, asReader, asAdministrator error
	var wg sync.WaitGroup
	wg.Go(func() {
		if asWriter = g.login(ctx, g.writer); asWriter == nil {
			asWriter = g.repository(ctx)
		}
	})
	if g.reader.Username != g.writer.Username {
		wg.Go(func() { asReader = g.login(ctx, g.reader) })
	}
	wg.Go(func() {
		if asAdministrator = g.login(ctx, g.administrator); asAdministrator == nil {
			asAdministrator = g.refusesStrangers(ctx)
		}
	})
	wg.Wait()
	return errors.Join(asWriter, asReader, asAdministrator)
}

func (g *git) login(ctx context.Context, s *gitserver.Server) error {
	return g.client.WaitFor(ctx, s.Username+" to log in on "+s.URL, kube.Poll, func(ctx context.Context) (bool, string, error) {
		login, err := s.User(ctx)
		if err != nil {
			return false, err.Error(), nil
		}
		return login == s.Username, "logged in as " + login, nil
	})
}

// repository makes sure that the repository of the tree is there, and that Argo CD may read it.
func (g *git) repository(ctx context.Context) error {
	_, tree, _ := strings.Cut(g.server.Repository, "/")
	if _, err := g.writer.EnsureRepository(ctx, tree, "The platform, as Argo CD installs it"); err != nil {
		return g.bad(gitserver.CodeServer, "make the repository "+tree, err)
	}
	if g.reader.Username == g.writer.Username {
		return nil
	}
	if err := g.writer.EnsureReader(ctx, tree, g.reader.Username); err != nil {
		return g.bad(gitserver.CodeServer, "let "+g.reader.Username+" read the repository "+tree, err)
	}
	return nil
}

func (g *git) refusesStrangers(ctx context.Context) error {
	err := g.administrator.CheckSignUpRefused(ctx)
	if errors.Is(err, gitserver.ErrSignUpOpen) {
		return &fault.Fault{
			Code: gitserver.CodeServer, Class: fault.Step, Op: "try to sign up on the git server as a stranger", Err: err,
			Fix: "switch registration off in the git server's configuration (Gitea: DISABLE_REGISTRATION), then run the same command again",
		}
	}
	if err != nil {
		return g.bad(gitserver.CodeServer, "try to sign up as a stranger", err)
	}
	return nil
}

func (g *git) bad(code fault.Code, op string, err error) error {
	namespace, name, _, _ := platform.ParseService(g.server.Service)
	return &fault.Fault{
		Code: code, Class: step.ClassOf(err), Op: op + " on the git server", Err: err,
		Fix: "look at its log: slipway toolchain -- kubectl logs -n " + fault.Quote(namespace) + " service/" + name,
	}
}

// register tells Argo CD how it gets at the GitOps tree, and at other repositories of the
// same owner, with the account that reads.
func (g *git) register(ctx context.Context, out contract.Git, engine string) error {
	account := map[string][]byte{
		"type": []byte("git"), "username": []byte(g.reader.Username), "password": g.reader.Password.Reveal(),
	}
	owner, _, _ := strings.Cut(out.Repository, "/")
	for _, w := range []struct{ name, kind, url string }{
		{argoRepository, "repository", out.CloneURL(out.Repository)},
		{argoCredentials, "repo-creds", out.ClusterURL + "/" + owner + "/"},
	} {
		data := maps.Clone(account)
		data["url"] = []byte(w.url)
		all := kube.Labels(g.env.Deployment)
		all["argocd.argoproj.io/secret-type"] = w.kind
		if err := writeSecret(ctx, g.client, engine, w.name, corev1.SecretTypeOpaque, all, data); err != nil {
			return err
		}
	}
	return nil
}
