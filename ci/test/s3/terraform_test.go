package s3

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// root is a Terraform root that needs no provider from a registry, and whose
// apply lasts until the file "go on" is there.
const root = `
terraform {
  backend "s3" {}
}

variable "wait" {
  type = string
}

resource "terraform_data" "slow" {
  triggers_replace = var.wait
  provisioner "local-exec" {
    command = "echo locked; while [ ! -e \"$GO_ON\" ]; do sleep 0.05; done"
    environment = { GO_ON = var.wait }
  }
}
`

// TestTerraform: Terraform's s3 backend keeps its state in the bucket and locks it
// there with a file, so that of two applies the second is refused.
func TestTerraform(t *testing.T) {
	program := os.Getenv("SLIPWAY_TERRAFORM")
	if program == "" {
		t.Skip("SLIPWAY_TERRAFORM does not name a terraform; the bundle has one in bin/")
	}
	address := server(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.tf"), []byte(root), 0o600))
	goOn := filepath.Join(dir, "go on")
	terraform := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, append(args, "-no-color", "-input=false")...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_VAR_wait="+goOn)
		return cmd
	}
	out, err := terraform("init",
		"-backend-config=bucket="+bucket, "-backend-config=key=prod/terraform.tfstate", "-backend-config=region="+region,
		`-backend-config=endpoints={s3="http://`+address+`"}`, "-backend-config=use_path_style=true", "-backend-config=use_lockfile=true",
		"-backend-config=skip_credentials_validation=true", "-backend-config=skip_requesting_account_id=true",
		"-backend-config=skip_metadata_api_check=true", "-backend-config=skip_region_validation=true").CombinedOutput()
	require.NoError(t, err, "%s", out)

	s := open(t, address, bucket, "prod")
	first := terraform("apply", "-auto-approve")
	pipe, err := first.StdoutPipe()
	require.NoError(t, err)
	first.Stderr = os.Stderr
	require.NoError(t, first.Start())
	var said strings.Builder
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "(local-exec): locked") {
			break
		}
	}
	require.Contains(t, said.String(), "(local-exec): locked")
	keys, err := s.List(t.Context(), "")
	require.NoError(t, err)
	require.Contains(t, keys, "terraform.tfstate.tflock")

	start := time.Now()
	out, err = terraform("apply", "-auto-approve", "-lock-timeout=0s").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "Error acquiring the state lock")
	require.Contains(t, string(out), "PreconditionFailed")
	require.Less(t, time.Since(start), time.Minute)

	require.NoError(t, os.WriteFile(goOn, nil, 0o600))
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
	}
	require.NoError(t, first.Wait(), said.String())
	keys, err = s.List(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"terraform.tfstate"}, keys, "the lock is given up")
	state, err := s.Get(t.Context(), "terraform.tfstate")
	require.NoError(t, err)
	require.Contains(t, string(state), `"type": "terraform_data"`)
	out, err = terraform("apply", "-auto-approve").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "0 added, 0 changed, 0 destroyed")
}
