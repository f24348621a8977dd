package gitserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// The codes of faults of the git server, and of a repository of the user's.
const (
	// CodeServer: the git server does not do what it must, or strangers may sign up on it.
	CodeServer fault.Code = "PRE-008"
	// CodePush: a push to the git server failed.
	CodePush fault.Code = "PRE-011"
	// CodeRepository: a repository of the user's cannot be read.
	CodeRepository fault.Code = "PRE-014"
)

// Account returns a client of the git server g that logs in with the account in a
// Secret, "namespace/name". Its password is told to hide, which keeps it out of the logs.
func Account(ctx context.Context, c *kube.Client, g contract.GitServer, secret string, hide func(string)) (*Server, error) {
	roots, err := kube.Roots(ctx, c)
	if err != nil {
		return nil, err
	}
	namespace, name, _ := strings.Cut(secret, "/")
	o, err := c.Secret(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	if o == nil || len(o.Data["username"]) == 0 || len(o.Data["password"]) == 0 {
		return nil, &fault.Fault{
			Code: CodeServer, Class: fault.Step, Op: "read the account " + secret,
			Fix: "declare the secret with the keys username and password in platform.yaml, then run the same command again",
			Err: fmt.Errorf("secret %s is missing or has no username and password", secret),
		}
	}
	hide(string(o.Data["password"]))
	return &Server{
		URL: g.URL, Address: g.Address, Roots: roots,
		Username: string(o.Data["username"]), Password: redact.New(o.Data["password"]), planned: c.Plan != nil,
	}, nil
}
