package step_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

// canaries are secrets of every kind; none of their parts is an ordinary word.
var canaries = []string{
	"canaryA7fk2Qx9LmZt",
	`canary/B+b"q\u&v=<w>?%`,
	"canaryC umläut\tand 'quotes'\n",
	"-----BEGIN KEY-----\nMIIcanaryD0123456789abcdef\nMIIcanaryDfedcba9876543210\n-----END KEY-----\n",
}

// written are the ways in which a step may come to write a secret.
func written(secret string) map[string]string {
	inJSON := func(s string) string {
		b, err := json.Marshal(map[string]string{"value": s})
		require.NoError(nil, err)
		return string(b)
	}
	unescaped := func(s string) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		require.NoError(nil, e.Encode(s))
		return b.String()
	}
	basic := func(user string) string {
		return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+secret))
	}
	return map[string]string{
		"plain": secret, "quoted": strconv.Quote(secret), "trimmed": strings.TrimSpace(secret),
		"JSON": inJSON(secret), "JSON in JSON": inJSON(inJSON(secret)), "JSON without HTML": unescaped(secret),
		"base64": base64.StdEncoding.EncodeToString([]byte(secret)), "base64 URL": base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"query": "?password=" + url.QueryEscape(secret), "path": "/" + url.PathEscape(secret) + "/",
		"user": "https://" + url.UserPassword("git", secret).String() + "@host/",
		"a:":   basic("a"), "ab:": basic("ab"), "abc:": basic("abc"),
		"base64 twice": code(code(secret)), "base64 twice, wrapped": wrapped(code(code(secret)), "\n"),
		"a registry's": code(inJSON(code("user:" + secret))), "in a Secret's base64": code("x" + code("ab"+secret+"\n")),
		"wrapped": wrapped(code(secret), "\n"), "wrapped and indented": wrapped(code(secret), "\r\n    "), "wrapped in JSON": inJSON(wrapped(code(secret), "\n")),
		"hexadecimal": hex.EncodeToString([]byte(secret)), "HEXADECIMAL": fmt.Sprintf("%X", secret), "with spaces": fmt.Sprintf("% x", secret),
		"hexadecimal, wrapped": wrapped(strings.ReplaceAll(fmt.Sprintf("% x", secret), " ", ":"), "\n"),
		"HTML":                 html.EscapeString(secret), "HTML in HTML": html.EscapeString(html.EscapeString(secret)), "HTML of JSON": html.EscapeString(inJSON(secret)),
		"a shell's": "'" + strings.ReplaceAll(secret, "'", `'\''`) + "'", "an old shell's": "'" + strings.ReplaceAll(secret, "'", `'"'"'`) + "'",
		"split": secret[:10] + "\n" + secret[10:], "split in two": `"` + secret[:11] + `" "` + secret[11:] + `"`, "split late": secret[:len(secret)-5] + "\\\n" + secret[len(secret)-5:],
	}
}

func code(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// wrapped has a line break after each 16 bytes.
func wrapped(s, end string) string {
	var b strings.Builder
	for line := range slices.Chunk([]byte(s), 16) {
		b.Write(line)
		b.WriteString(end)
	}
	return b.String()
}

// traces are what must be nowhere: parts of the canaries in every coding, so that
// what is cut in half is found too.
func traces() []string {
	var out []string
	for _, c := range canaries {
		for line := range strings.Lines(strings.TrimSpace(c)) {
			at := strings.Index(line, "canary")
			if at < 0 {
				continue
			}
			out = append(out, line[at:min(at+10, len(line))]) // "canaryA7fk", and what is like it in URLs and JSON
		}
		for before := range 3 {
			once := code(string(make([]byte, before)) + c)
			twice := code(once)
			out = append(out, once[4:14], once[len(once)-16:len(once)-6], twice[4:14], twice[20:30])
		}
		for _, format := range []string{"%x", "%X", "% x"} {
			out = append(out, fmt.Sprintf(format, c)[:12])
		}
	}
	return out
}

// requireNoTrace fails for each trace of a canary in text.
func requireNoTrace(t *testing.T, where, text string) {
	t.Helper()
	for _, trace := range append(traces(), "canary") {
		if at := strings.Index(text, trace); at >= 0 {
			t.Errorf("%s holds %q: …%q…", where, trace, text[max(0, at-40):min(len(text), at+60)])
		}
	}
}

// tell has a step write every canary in every way, whole and cut.
func tell(t *testing.T, env *step.Env) {
	for _, c := range canaries {
		env.Redact(c)
	}
	for _, c := range canaries {
		for way, text := range written(c) {
			env.Progress("%s: %s", way, text)
			env.Logger.Info(way+" "+text, way, text, "nested", map[string]string{"k": text}, "err", errors.New(text))
			fmt.Fprintf(env.Output(), "%s: %s\n", way, text)
			half := len(text) / 2
			for _, part := range []string{text[:half], text[half:], "\n"} { // in two writes
				_, err := io.WriteString(env.Output(), part)
				require.NoError(t, err)
			}
			require.NoError(t, env.Keep("kept-"+strings.ReplaceAll(way, ":", "")+".txt", []byte(text)))
		}
		for _, at := range []int{1, len(c) / 2, len(c) - 1} { // where a line that does not end is cut
			for _, part := range []string{strings.Repeat(".", 64<<10) + c[:at], c[at:]} {
				_, err := io.WriteString(env.Output(), part)
				require.NoError(t, err)
			}
		}
		fmt.Fprintln(env.Output())
	}
}

// all is every canary in every way, for an error.
func all() string {
	var b strings.Builder
	for _, c := range canaries {
		for way, text := range written(c) {
			fmt.Fprintf(&b, "%s %s; ", way, text)
		}
	}
	return b.String()
}

type said struct {
	Text string `json:"text"`
}

// TestNoSecretIsLeftAnywhere: whatever a step does with a secret that it has
// named, and however it ends, neither the state volume nor the report has it.
func TestNoSecretIsLeftAnywhere(t *testing.T) {
	const id = "20260102-030405-a1b2c3"
	for name, end := range map[string]func(ctx context.Context) (said, error){
		"succeeds": func(context.Context) (said, error) { return said{"fine"}, nil },
		"fails":    func(context.Context) (said, error) { return said{}, errors.New(all()) },
		"fails with a fault": func(context.Context) (said, error) {
			return said{}, &fault.Fault{Code: "ABC-001", Class: fault.Step, Op: all(), Fix: all(), Err: errors.New(all())}
		},
		"fails around a fault": func(context.Context) (said, error) {
			return said{}, fmt.Errorf("%s: %w", all(), &fault.Fault{Code: "ABC-001", Class: fault.Step, Op: all(), Fix: all(), Err: errors.New(all())})
		},
		"panics":               func(context.Context) (said, error) { panic(all()) },
		"panics with an error": func(context.Context) (said, error) { panic(errors.New(all())) },
		"answers":              func(context.Context) (said, error) { return said{all()}, nil },
		"takes too long": func(ctx context.Context) (said, error) {
			<-ctx.Done()
			return said{}, fmt.Errorf("%s: %w", all(), ctx.Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			step.Register(&b.reg, declared[in, said]("stage", "leaky"), step.Verified(func(ctx context.Context, env *step.Env, _ in) (said, error) {
				tell(t, env)
				return end(ctx)
			}, func(_ context.Context, env *step.Env, _ in, _ said) error {
				tell(t, env)
				return errors.New(all())
			}))
			req := contract.Request{Run: id, Stage: "stage", Step: "leaky", Digests: digests("d")}
			if name == "takes too long" {
				req.Timeout = contract.Duration(2 * time.Second)
			}
			code, first := b.run(req)
			require.Equal(t, name == "succeeds", code == 0, "%v", first.Fault)
			recordRun(t, b.path("state", "runs", id), id, first)
			req.Run = "r2"
			_, second := b.run(req) // what was done does not hold: the log says why
			req.Run, req.VerifyOnly = "r3", true
			_, third := b.run(req)
			require.Equal(t, contract.Failed, third.Status)
			if code != 0 && name != "answers" {
				require.Contains(t, first.Fault.Error(), "***")
				require.Contains(t, second.Fault.Error(), "***")
			}
			require.Equal(t, code == 0, strings.Contains(third.Fault.Error(), "***"))

			requireNoTrace(t, "the screen", b.shown.String())
			require.Contains(t, b.shown.String(), "***")
			var files []string
			require.NoError(t, filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				text, err := os.ReadFile(path)
				require.NoError(t, err)
				files = append(files, filepath.Base(path))
				if strings.HasPrefix(d.Name(), "kept-JSON") {
					require.True(t, json.Valid(text), "%s", text)
				}
				requireNoTrace(t, path, string(text))
				return nil
			}))
			for _, file := range []string{
				"request.json", "result.json", "log.txt", "kept-base64.txt", "000000000000.json",
				"report.json", "report.html", "junit.xml", "summary.md", "summary.txt",
			} {
				require.Contains(t, files, file)
			}
		})
	}
}

// TestASecretInARepeatedOutput: what a step sees when it looks again is no output
// either when it holds a secret.
func TestASecretInARepeatedOutput(t *testing.T) {
	b := newBench(t)
	text := "fine"
	step.Register(&b.reg, declared[in, said]("stage", "leaky"), step.Repeatable(func(_ context.Context, env *step.Env, _ in) (said, error) {
		env.Redact(canaries[0])
		return said{text}, nil
	}))
	req := contract.Request{Stage: "stage", Step: "leaky", Digests: digests("d")}
	_, res := b.run(req)
	require.Equal(t, contract.Succeeded, res.Status)
	text = all()
	_, res = b.run(req)
	require.ErrorIs(t, res.Fault, &fault.Fault{Code: "STP-007"})
	requireNoTrace(t, "the result", string(res.Output))
}

// recordRun writes the report of a run of one step into its directory.
func recordRun(t *testing.T, dir, id string, res contract.Result) {
	t.Helper()
	var p pipeline.Pipeline
	var s *pipeline.Step[int]
	s = pipeline.Add(&p, pipeline.Key{Stage: "stage", Name: "leaky"}, func(context.Context) (int, error) {
		s.Describe(pipeline.Detail{Log: "steps/stage.leaky/log.txt"})
		if res.Fault != nil {
			return 0, res.Fault
		}
		return 0, nil
	})
	r := &report.Run{ID: id, Workflow: "install", Deployment: "test", Started: time.Now()}
	r.Plan(p.Graph())
	results, err := p.Run(t.Context(), pipeline.Options{})
	r.Finish(results, err, time.Now())
	text, err := r.Encode()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, report.RecordFile), text, 0o600))
	require.NoError(t, report.Render(dir, id, false))
}

// TestNoSecretIsInASpan looks at what a collector of spans gets to see of a step
// that fails with its secrets.
func TestNoSecretIsInASpan(t *testing.T) {
	b := newBench(t)
	step.Register(&b.reg, declared[json.RawMessage, said]("infrastructure", "preflight"), step.Verified(
		func(context.Context, *step.Env, json.RawMessage) (said, error) { return said{}, nil },
		func(_ context.Context, env *step.Env, _ json.RawMessage, _ said) error {
			tell(t, env)
			return errors.New(all())
		}))
	run := func(ctx context.Context, req contract.Request) contract.Result {
		if req.Step != "preflight" {
			return contract.Result{Status: contract.Failed, Fault: &fault.Fault{Code: "STP-001", Err: errors.New("unknown")}}
		}
		dirs := step.Dirs{State: b.path("state")}
		before := req
		before.Run, before.VerifyOnly = "r0", false
		require.Equal(t, contract.Succeeded, step.Perform(ctx, &b.reg, before, dirs, "", io.Discard).Status)
		return step.Perform(ctx, &b.reg, req, dirs, "", io.Discard)
	}
	spans := tracetest.NewSpanRecorder()
	ctx, command := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test").Start(t.Context(), "slipway install")
	plan := contract.PlanRequest{Run: "r1", Inputs: contract.Inputs{Config: config.Default(), Release: &platform.Release{}, ImagesDigest: "sha256:1"}}
	_, err := stages.Verify(ctx, stages.Install(), plan, run)
	require.NoError(t, err)
	command.End()
	i := slices.IndexFunc(spans.Ended(), func(s sdktrace.ReadOnlySpan) bool { return s.Name() == "infrastructure/preflight" })
	require.GreaterOrEqual(t, i, 0)
	require.Contains(t, spans.Ended()[i].Status().Description, "***")
	text, err := json.Marshal(tracetest.SpanStubsFromReadOnlySpans(spans.Ended()))
	require.NoError(t, err)
	requireNoTrace(t, "a span", string(text))
}
