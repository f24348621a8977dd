package containers

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/fault"
)

// arguments are what stands between brackets in a query of Dagger's SDK.
var arguments = regexp.MustCompile(`\((?:[^()"]|"(?:[^"\\]|\\.)*")*\)`)

// engine is a client of an engine that answers each query by its fields, whose arguments are left
// out, with a value, or with a problem if that is not empty.
func engine(t *testing.T, answer func(fields []string) (value any, problem string)) *dagger.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Query string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		fields := strings.FieldsFunc(arguments.ReplaceAllString(asked.Query, ""), func(r rune) bool { return strings.ContainsRune("{} \n", r) })[1:]
		value, problem := answer(fields)
		said := map[string]any{}
		if problem != "" {
			said["errors"] = []any{map[string]any{"message": problem}}
		} else {
			for n := len(fields) - 1; n >= 0; n-- {
				value = map[string]any{fields[n]: value}
			}
			said["data"] = value
		}
		if err := json.NewEncoder(w).Encode(said); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	require.NoError(t, err)
	t.Setenv("DAGGER_SESSION_PORT", at.Port())
	t.Setenv("DAGGER_SESSION_TOKEN", "secret")
	client, err := dagger.Connect(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// gone is a connection to a session that nobody serves any more.
type gone struct{ at string }

func (g gone) Host() string { return g.at }
func (gone) Close() error   { return nil }

func (gone) Do(r *http.Request) (*http.Response, error) { return http.DefaultClient.Do(r) }

// TestASessionThatHasEnded is told as what it is, whatever the engine was asked for.
func TestASessionThatHasEnded(t *testing.T) {
	refused := httptest.NewServer(nil)
	refused.Close()
	unreachable := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "http do: the engine is gone")
	}))
	defer unreachable.Close()
	ending := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data":null,"errors":[{"message":"solve: database not open [traceparent:1e100386d38b035a516ed63d4a506c48-6f5702ac557bff3d]","path":["host"]}]}`)
	}))
	defer ending.Close()
	unattached := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"data":null,"errors":[{"message":"loading workspace: workspace detection: failed to stat path: failed to get requester session: session for \"pmro\" not found"}]}`)
	}))
	defer unattached.Close()
	index := &bundle.Bundle{}
	index.Files = []bundle.File{{Kind: bundle.Tool, Name: runner, Path: "bin/slipway"}}
	for url, says := range map[string]string{refused.URL: "connection refused", unreachable.URL: "502 Bad Gateway: http do: the engine is gone", ending.URL: "solve: database not open", unattached.URL: "failed to get requester session"} {
		client, err := dagger.Connect(t.Context(), dagger.WithConn(DetectEnd(gone{strings.TrimPrefix(url, "http://")})))
		require.NoError(t, err)
		_, asked := client.Version(t.Context())
		_, ran := Open(client, "dev", &Images{Toolchain: client.Container()}, Access{}).Exec(t.Context(), Exec{Args: []string{"slipway"}})
		_, opened := FromBundle(t.Context(), client, client.Directory(), trust.Anchor{Digest: trust.Unverified})
		for _, err := range []error{asked, ran, opened, verify(t.Context(), client, client.Directory(), index)} {
			f, ok := errors.AsType[*fault.Fault](err)
			require.True(t, ok, err)
			require.Equal(t, CodeSessionEnded, f.Code)
			require.Equal(t, fault.Step, f.Class)
			require.ErrorContains(t, err, says)
			require.Contains(t, f.Fix, "run the same command again")
		}
		stopped, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = client.Version(stopped)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, &fault.Fault{Code: CodeSessionEnded}, "nobody waits for it any more")
	}
}

func TestAnIndexThatCannotBeReadSaysWhy(t *testing.T) {
	client := engine(t, func([]string) (any, string) { return nil, "no space left on device" })
	_, err := FromBundle(t.Context(), client, client.Directory(), trust.Anchor{Digest: trust.Unverified})
	require.ErrorIs(t, err, &fault.Fault{Code: bundle.CodeAbsent})
	require.ErrorContains(t, err, "read bundle.json: ")
	require.ErrorContains(t, err, "no space left on device")

	index := &bundle.Bundle{}
	index.Files = []bundle.File{{Kind: bundle.Tool, Name: runner, Path: "bin/slipway"}}
	err = verify(t.Context(), client, client.Directory(), index)
	require.ErrorIs(t, err, &fault.Fault{Code: bundle.CodeContent})
	require.ErrorContains(t, err, "bin/slipway: ")
	require.ErrorContains(t, err, "no space left on device")
}

// Nothing of a bundle runs that nobody vouches for, or that has other versions than this
// program's lock.
func TestABundleIsCheckedBeforeItRuns(t *testing.T) {
	text, err := bundle.Index{Version: bundle.Format, Platform: "linux/amd64", Files: []bundle.File{
		{Path: "bin/slipway", Name: runner, Kind: bundle.Tool, SHA256: strings.Repeat("a", 64)},
	}}.Marshal()
	require.NoError(t, err)
	var asked []string
	platform := "linux/amd64"
	client := engine(t, func(fields []string) (any, string) {
		asked = append(asked, fields...)
		switch fields[len(fields)-1] {
		case "contents":
			return string(text), ""
		case "defaultPlatform":
			return platform, ""
		}
		return nil, "nothing else is to be asked"
	})
	b, err := bundle.Parse(text)
	require.NoError(t, err)
	for digest, code := range map[string]fault.Code{
		"":                                  trust.CodeBundle,
		"sha256:" + strings.Repeat("b", 64): trust.CodeBundle,
		b.ReadDigest():                      bundle.CodeLock,
		trust.Unverified:                    bundle.CodeLock,
	} {
		_, err := FromBundle(t.Context(), client, client.Directory(), trust.Anchor{Digest: digest, Name: "the test"})
		require.ErrorIs(t, err, &fault.Fault{Code: code}, digest)
	}
	platform = "linux/arm64"
	_, err = FromBundle(t.Context(), client, client.Directory(), trust.Anchor{Digest: b.ReadDigest(), Name: "the test"})
	require.ErrorIs(t, err, &fault.Fault{Code: bundle.CodePlatform}, "the bundle is for another architecture than the engine's")
	require.NotContains(t, asked, "withExec")
	require.NotContains(t, asked, "import")
}

func TestAResultThatCannotBeReadSaysWhy(t *testing.T) {
	client := engine(t, func(fields []string) (any, string) {
		switch fields[len(fields)-1] {
		case "exitCode":
			return 4, ""
		case "id":
			return "x", ""
		case "stderr":
			return "complaint", ""
		}
		return nil, "result.json: no such file"
	})
	d := Open(client, "dev", &Images{Toolchain: client.Container()}, Access{})
	out, err := d.Exec(t.Context(), Exec{Args: []string{"slipway"}, Result: "/result.json"})
	require.NoError(t, err)
	require.ErrorContains(t, out.NoResult, "result.json: no such file")
	out.NoResult = nil
	require.Equal(t, Outcome{ExitCode: 4, Stderr: "complaint"}, out)

	out, err = d.Exec(t.Context(), Exec{Args: []string{"slipway"}})
	require.NoError(t, err)
	require.Equal(t, Outcome{ExitCode: 4, Stderr: "complaint"}, out, "none was asked for")
}

// TestAResultThatTheEngineDoesNotGive, as to a client whose machine slept.
func TestAResultThatTheEngineDoesNotGive(t *testing.T) {
	code, said := 0, ""
	stuck := engine(t, func(fields []string) (any, string) {
		switch fields[len(fields)-1] {
		case "exitCode":
			return code, ""
		case "stderr":
			return said, ""
		case "id":
			return "x", ""
		}
		return nil, "flightcontrol: exceeded retry timeout"
	})
	run := func() error {
		_, err := Open(stuck, "dev", &Images{Toolchain: stuck.Container()}, Access{}).Exec(t.Context(), Exec{Args: []string{"slipway"}, Result: "/result.json"})
		return err
	}
	err := run()
	require.ErrorIs(t, err, &fault.Fault{Code: codeLost})
	require.Equal(t, fault.Step, fault.ClassOf(err))
	require.ErrorContains(t, err, "exit status 0, and the result cannot be read: ")
	require.ErrorContains(t, err, "exceeded retry timeout")

	code, said = 6, "slipway-fault: {\"code\":\"LOK-002\",\"class\":6,\"message\":\"bob took it over\"}\n"
	require.ErrorIs(t, run(), &fault.Fault{Code: "LOK-002"}, "what the command has told is not hidden")
}

// TestAResultOnAnotherMachine: a process that has joined a session finds nothing that is exported to
// who opened it, elsewhere.
func TestAResultOnAnotherMachine(t *testing.T) {
	client := engine(t, func(fields []string) (any, string) {
		if fields[len(fields)-1] == "exitCode" {
			return 0, ""
		}
		return "x", ""
	})
	out, err := Open(client, "dev", &Images{Toolchain: client.Container()}, Access{}).Exec(t.Context(), Exec{Args: []string{"slipway"}, Result: "/result.json"})
	f, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok, err)
	require.Equal(t, codeLost, f.Code)
	require.ErrorContains(t, err, "what the owner of the session has exported")
	require.Contains(t, f.Fix, "run slipway on the machine where the session on the engine was opened")
	require.NoError(t, out.NoResult)
}

// The engine's errors end with the span that failed, which is for its own tools.
func TestNoSpansInErrors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"errors":[{"message":"exit code: 1\n [traceparent:1e100386d38b035a516ed63d4a506c48-6f5702ac557bff3d]","extensions":{"exitCode":1}}]}`)
	}))
	t.Cleanup(server.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, nil)
	require.NoError(t, err)
	answer, err := DetectEnd(gone{}).Do(r)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.JSONEq(t, `{"errors":[{"message":"exit code: 1\n","extensions":{"exitCode":1}}]}`, string(text))
}
