package conductor

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
)

func TestWhatAStepLeftIsRead(t *testing.T) {
	var out contract.Publication
	read := func(result string) (contract.Status, error) {
		r, err := decodeResult("orchestrator/publish", containers.Outcome{ExitCode: 4, Result: []byte(result), Stderr: "first\nlast\n"})
		if err != nil {
			return "", err
		}
		return r.Status, r.Decode("orchestrator/publish", &out)
	}
	status, err := read(`{"status":"reused","output":{"revision":"abc"}}`)
	require.NoError(t, err)
	require.Equal(t, contract.Reused, status)
	require.Equal(t, "abc", out.Revision)

	_, err = read(`{"status":"failed","fault":{"code":"PRE-011","class":4,"op":"push","fix":"look","message":"refused"}}`)
	f, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.Equal(t, &fault.Fault{Code: "PRE-011", Class: fault.Step, Op: "push", Fix: "look", Err: errors.New("refused")}, f)

	_, err = read(`{"status":`)
	require.ErrorContains(t, err, "decode the result of orchestrator/publish")

	_, err = decodeResult("orchestrator/publish", containers.Outcome{ExitCode: 137, NoResult: errors.New("open result.json: no such file"), Stderr: "first\nlast\n"})
	require.ErrorIs(t, err, &fault.Fault{Code: fault.CodeBug})
	require.ErrorContains(t, err, "exit status 137 without a result: open result.json: no such file: last")
}

func TestTheRecordNamesWhatTheStepsRanWith(t *testing.T) {
	c, _ := conducted(t, nil)
	c.opts.Images.Tools = map[string]string{"terraform": "sha256:1"}
	c.opts.Images.Digest, c.opts.Engine = "sha256:2", "v0.20.8"
	record := c.newRecord("r1", config.Install)
	require.Equal(t, "sha256:2 v0.20.8", record.Images+" "+record.Engine)
	require.Equal(t, c.opts.Images.Tools, record.Tools)
	require.Equal(t, config.Install, record.Workflow)
	require.Empty(t, record.Warnings)

	c.opts.Images.Warning = "the bundle is unverified"
	record = c.newRecord("r1", config.Install)
	require.Equal(t, "the bundle is unverified", record.Warnings[0].Summary)
	require.Contains(t, record.Warnings[0].Fix, "--bundle-digest")
}

func TestAnotherServerInAKubeconfig(t *testing.T) {
	const text = "clusters:\n- name: a\n  cluster: {server: https://cluster:6443, certificate-authority-data: eA==}\ncurrent-context: a\n"
	got, err := withServer(text, "https://127.0.0.1:6443", true)
	require.NoError(t, err)
	require.Contains(t, got, "server: https://127.0.0.1:6443")
	require.Contains(t, got, "certificate-authority-data: eA==")
	require.NotContains(t, got, "cluster:6443")
	require.Contains(t, got, "tls-server-name: cluster", "the certificate knows no other address")
	got, err = withServer(text, "https://127.0.0.1:6443", false)
	require.NoError(t, err)
	require.NotContains(t, got, "tls-server-name", "it is not ours")
	_, err = withServer("a: &x b\nclusters: [*x]\n", "x", true)
	require.ErrorContains(t, err, "decode the kubeconfig: line 1: an anchor or alias")
	_, err = withServer("\t", "x", true)
	require.ErrorContains(t, err, "decode the kubeconfig")
}
