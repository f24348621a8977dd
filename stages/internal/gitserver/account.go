package gitserver

import (
	"context"
	"fmt"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/trust"
)

// CodeAccount: the cluster holds no credentials of the account that Slipway uses on the
// git server.
const CodeAccount fault.Code = "GIT-001"

// The git server in the cluster.
const (
	Namespace = "gitea"
	Service   = "gitea" // Service and Deployment

	Admin = "gitea-admin"   // Secret: username, password
	User  = "gitea-slipway" // Secret: username, password; Slipway pushes and Argo CD reads as this user
)

// Account returns a client of the git server g that logs in with the account in a
// Secret of Namespace. Its password is told to hide, which keeps it out of the logs.
func Account(ctx context.Context, c *kube.Client, g contract.GitServer, secret string, hide func(string)) (*Server, error) {
	roots, err := trust.Roots(ctx, c)
	if err != nil {
		return nil, err
	}
	o, err := c.Secret(ctx, Namespace, secret)
	if err != nil {
		return nil, err
	}
	if o == nil || len(o.Data["username"]) == 0 || len(o.Data["password"]) == 0 {
		return nil, &fault.Fault{
			Code: CodeAccount, Class: fault.Step, Op: "read the account " + secret,
			Fix: "declare the secret with the keys username and password in platform.yaml, then run again: slipway install",
			Err: fmt.Errorf("secret %s/%s is missing or has no username and password", Namespace, secret),
		}
	}
	hide(string(o.Data["password"]))
	return &Server{
		URL: g.URL, Address: g.Address, Roots: roots,
		Username: string(o.Data["username"]), Password: redact.New(o.Data["password"]),
	}, nil
}
