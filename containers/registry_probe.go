package containers

import (
	"context"
	"fmt"
	"strings"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/imageref/refused"
)

// AskCommand is the command of this program that asks a registry for an image by its URL, with
// the account in the file of --registry-auth, and tells the fault where it gives none.
const AskCommand = "ask-registry"

// askAsNode asks the mirror for the image of pods' sandboxes as the cluster's node will: from
// a container, which is in the engine's network and trusts whom the engine trusts, with the
// node's account.
func (i *Images) askAsNode(ctx context.Context) error {
	_, digest, _ := strings.Cut(i.Refs["pause"], "@")
	args := []string{"slipway", AskCommand, i.Mirror + "/pause@" + digest}
	access := Access{}
	if i.PullSecret != nil {
		args = append(args, "--registry-auth", account)
		access.Files = map[string]*dagger.Secret{account: i.PullSecret}
	}
	done := fresh(access.into(i.Toolchain)).WithExec(args, dagger.ContainerWithExecOpts{Expect: dagger.ReturnTypeAny})
	code, err := done.ExitCode(ctx)
	if err != nil || code == 0 {
		return err
	}
	said, err := done.Stderr(ctx)
	if err != nil {
		return err
	}
	f := ParseFault(said)
	if f == nil {
		return fmt.Errorf("ask %s as the cluster's node does: exit status %d: %s", i.Mirror, code, tail(said, 400))
	}
	switch f.Code {
	case refused.CodeLogin:
		f.Fix = "log in with an account that may pull from it (docker login), or give a file with one: --registry-auth FILE; dagger call needs the file, before the function: --registry-auth file:~/.docker/config.json"
	case refused.CodeUnreachable:
		f.Fix = `see why it does not answer the engine's containers, or give an address at which it does: local: {registryMirror: "http://192.0.2.1:5000/slipway"}`
	}
	return f
}
