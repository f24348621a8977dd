// Package cisystems tests the examples for CI systems: it runs the shell in them.
package cisystems

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// example is the pipeline of one system: its scripts by job.
type example struct {
	system string
	jobs   map[string][]script
}

// script is a script of a job.
type script struct {
	text   string
	always bool // it runs after others have failed, too
}

func read(t *testing.T, file string, into any) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "examples/ci", file))
	require.NoError(t, err)
	if into != nil {
		require.NoError(t, yaml.Unmarshal(text, into))
	}
	return string(text)
}

// examples reads all four.
func examples(t *testing.T) []example {
	t.Helper()
	var hub struct {
		Jobs map[string]struct {
			Steps []struct{ Run, If string }
		}
	}
	read(t, "github-actions/slipway.yaml", &hub)
	github := example{"github-actions", map[string][]script{}}
	for name, job := range hub.Jobs {
		for _, s := range job.Steps {
			if s.Run != "" {
				github.jobs[name] = append(github.jobs[name], script{s.Run, strings.Contains(s.If, "always()")})
			}
		}
	}

	var lab map[string]struct {
		Extends      string
		BeforeScript []string `yaml:"before_script"`
		Script       []string
		AfterScript  []string `yaml:"after_script"`
	}
	read(t, "gitlab-ci/.gitlab-ci.yml", &lab)
	gitlab := example{"gitlab-ci", map[string][]script{}}
	for name, job := range lab {
		if len(job.Script) > 0 { // the others are variables, and what jobs extend
			base := lab[job.Extends]
			gitlab.jobs[name] = []script{ // the system makes one script each of them
				{strings.Join(slices.Concat(base.BeforeScript, job.BeforeScript, job.Script), "\n"), false},
				{strings.Join(slices.Concat(base.AfterScript, job.AfterScript), "\n"), true},
			}
		}
	}

	var pipelines struct {
		Jobs []struct {
			Job   string
			Steps []struct{ Bash, Condition string }
		}
	}
	read(t, "azure-pipelines/azure-pipelines.yml", &pipelines)
	azure := example{"azure-pipelines", map[string][]script{}}
	for _, job := range pipelines.Jobs {
		for _, s := range job.Steps {
			if s.Bash != "" {
				azure.jobs[job.Job] = append(azure.jobs[job.Job], script{s.Bash, strings.Contains(s.Condition, "always()")})
			}
		}
	}

	jenkins := example{"jenkins", map[string][]script{}}
	sh := regexp.MustCompile(`(?s)\bsh (?:'''(.*?)'''|'([^'\n]*)')`)
	for _, part := range strings.Split(read(t, "jenkins/Jenkinsfile", nil), "stage('")[1:] {
		name, text, _ := strings.Cut(part, "'")
		steps, always, _ := strings.Cut(text, "always {")
		for at, section := range []string{steps, always} {
			for _, m := range sh.FindAllStringSubmatch(section, -1) {
				jenkins.jobs[name] = append(jenkins.jobs[name], script{m[1] + m[2], at == 1})
			}
		}
	}
	return []example{github, gitlab, azure, jenkins}
}

// TestActionlint: GitHub would take the workflow, and not one with a mistake.
func TestActionlint(t *testing.T) {
	lint := func(text string) []*actionlint.Error {
		linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{ConfigFile: "testdata/actionlint.yaml"})
		require.NoError(t, err)
		found, err := linter.Lint("platform.yaml", []byte(text), nil)
		require.NoError(t, err)
		return found
	}
	text := read(t, "github-actions/slipway.yaml", nil)
	require.Empty(t, lint(text))
	require.NotEmpty(t, lint(strings.Replace(text, "debian-12]", "debian-13]", 1)))
	require.NotEmpty(t, lint(strings.Replace(text, "matrix.shard }}/", "matrix.shards }}/", 1)))
}

const root = "../../.."

// tools stand in for make, dagger, slipway and git: they write down how they were called.
// Variables say what fails. The runs are a file; an install or a test adds one to it.
var tools = map[string]string{
	"make": `#!/bin/sh
echo "make $*" >>"$CALLS"
[ "$*" != "$FAILS" ] || exit 1
[ "$*" != "-s env" ] || echo "export READY=yes"
`,
	"git": "#!/bin/sh\necho 0123abc\n",
	"dagger": `#!/bin/sh
echo "dagger $*" >>"$CALLS"
[ "$READY" = yes ] || exit 9
case "$*" in
*" install "*) what=install; run=r2 ;;
*" test "*) what=test; run=r3 ;;
esac
outcome=succeeded
[ "$what" != "$FAILS" ] || outcome=failed
[ "$what" = "$REFUSED" ] || jq ". + [{id: \"$run\", workflow: \"$what\", outcome: \"$outcome\"}]" "$RUNS" >"$RUNS.new" && mv "$RUNS.new" "$RUNS"
[ "$what" != "$REFUSED" ] || exit 6
[ $outcome = succeeded ] || exit 4
`,
	"slipway": `#!/bin/sh
echo "slipway $*" >>"$CALLS"
[ "$READY" = yes ] || exit 9
[ "$1" != "$FAILS" ] || exit 3
case "$*" in
runs*) cat "$RUNS" ;;
report*) while [ "$1" != --out ]; do shift; done; mkdir "$2" && echo "the summary of $2" >"$2/summary.md" ;;
save*) cat >/dev/null; while [ "$1" != --out ]; do shift; done; echo package >"$2" ;;
upgrade-matrix*)
  mkdir -p collected/upgrades/mx-0 collected/upgrades/mx-1 collected/upgrades/mx-2
  echo package >collected/upgrades/mx-1/run.tar.zst
  cat >collected/upgrades/matrix.json <<X
{"cells": [
{"cell": {"from": "1.0.0", "to": "2.0.0", "scale": 50, "style": "graceful", "faults": "none"}, "deployment": "mx-0", "outcome": "upgraded"},
{"cell": {"from": "1.1.0", "to": "2.0.0", "scale": 50, "style": "graceful", "faults": "none"}, "deployment": "mx-1", "outcome": "failed", "code": "ORC-005", "package": "$PWD/collected/upgrades/mx-1/run.tar.zst", "reproduce": "slipway reproduce --package $PWD/collected/upgrades/mx-1/run.tar.zst"},
{"cell": {"from": "1.1.0", "to": "2.0.0", "scale": 50, "style": "in-place", "faults": "none"}, "deployment": "mx-2", "outcome": "failed", "code": "MTX-003"}]}
X
  exit 4 ;;
esac
`,
}

// ran is how a job went.
type ran struct {
	code           int // of the first script that failed
	calls, printed string
	shown          string // what the system shows as the job's summary
	files          string // where the artifacts are
}

// run runs the scripts of a job as its system does: after one has failed, only those that run
// always.
func run(t *testing.T, e example, job string, env ...string) ran {
	t.Helper()
	dir, work := t.TempDir(), t.TempDir()
	for name, text := range tools {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	folder, err := filepath.Abs(filepath.Join(root, "examples"))
	require.NoError(t, err)
	require.NoError(t, os.Symlink(folder, filepath.Join(work, "examples")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "runs"), []byte(`[{"id": "r1", "workflow": "install", "outcome": "failed"}]`), 0o644))
	system := map[string]string{"github-actions": "GITHUB_STEP_SUMMARY=" + filepath.Join(dir, "summary"), "azure-pipelines": "TF_BUILD=True"}[e.system]
	out, text := ran{files: filepath.Join(work, "collected")}, new(strings.Builder)
	jenkins := e.system == "jenkins"
	scripts := e.jobs[job]
	if jenkins && job == "upgrades" {
		scripts = e.jobs["shard"] // a stage of its matrix
	}
	require.NotEmpty(t, scripts)
	for _, s := range scripts {
		if out.code != 0 && !s.always {
			continue
		}
		file := filepath.Join(dir, "script")
		require.NoError(t, os.WriteFile(file, []byte(s.text), 0o755))
		cmd := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", file)
		cmd.Dir, cmd.Stdout, cmd.Stderr = work, text, text
		cmd.Env = append([]string{
			"PATH=" + dir + ":" + os.Getenv("PATH"), "CALLS=" + filepath.Join(dir, "calls"), "RUNS=" + filepath.Join(dir, "runs"), system,
			"SLIPWAY_CONFIG=slipway.yaml", "FAILS=nothing", "REFUSED=nothing",
			"CI_NODE_INDEX=1", "CI_NODE_TOTAL=2", "SYSTEM_JOBPOSITIONINPHASE=1", "SYSTEM_TOTALJOBSINPHASE=2", "SHARD=" + map[bool]string{true: "1", false: "1/2"}[jenkins],
		}, env...)
		if err := cmd.Run(); err != nil && out.code == 0 {
			out.code = cmd.ProcessState.ExitCode()
		}
	}
	if moved := filepath.Join(work, "collected-1"); jenkins && job == "upgrades" {
		out.files = moved
	}
	of := func(file string) string {
		data, _ := os.ReadFile(file) // empty if it is not there
		return string(data)
	}
	out.calls, out.printed = of(filepath.Join(dir, "calls")), text.String()
	switch e.system {
	case "github-actions":
		out.shown = of(filepath.Join(dir, "summary"))
	case "azure-pipelines":
		if strings.Contains(out.printed, "##vso[task.uploadsummary]"+filepath.Join(work, "collected/summary.md")+"\n") {
			require.Contains(t, out.printed, "##vso[task.setvariable variable=COLLECTED]yes\n")
			out.shown = of(filepath.Join(work, "collected/summary.md"))
		}
	default:
		out.shown = out.printed
	}
	require.True(t, strings.HasSuffix(out.calls, "make engine-stop\n"), out.calls)
	return out
}

func TestTheShellThatInstallsAndTests(t *testing.T) {
	for _, e := range examples(t) {
		t.Run(e.system, func(t *testing.T) {
			r := run(t, e, "install")
			require.Zero(t, r.code, r.printed)
			require.Contains(t, r.calls, "make engine bundle\n")
			require.Contains(t, r.calls, "dagger call --progress=plain install --config slipway.yaml --lock-timeout 10m\n")
			require.Contains(t, r.calls, "dagger call --progress=plain test --config slipway.yaml --lock-timeout 10m\n")
			require.NotContains(t, r.calls, "slipway save")
			require.Contains(t, r.shown, "the summary of collected/r2\nthe summary of collected/r3\n")
			require.NotContains(t, r.shown, "collected/r1", "an earlier run is not this job's")
			require.NotContains(t, r.shown, "Reproduce")

			r = run(t, e, "install", "FAILS=install")
			require.Equal(t, 4, r.code, "a failed install fails the job")
			require.NotContains(t, r.calls, " test ")
			require.Contains(t, r.calls, "slipway save --run r2 --out collected/run.tar.zst --config slipway.yaml\n")
			require.FileExists(t, filepath.Join(r.files, "run.tar.zst"))
			require.FileExists(t, filepath.Join(r.files, "r2/summary.md"))
			require.Contains(t, r.shown, "the summary of collected/r2\n\n### Reproduce it\n")
			require.Contains(t, r.shown, "$ git checkout 0123abc && make engine bundle && eval \"$(make -s env)\"\n$ slipway reproduce --package run.tar.zst\n")

			r = run(t, e, "install", "FAILS=test")
			require.Equal(t, 4, r.code)
			require.Contains(t, r.calls, "slipway save --run r3 ")
			require.Contains(t, r.shown, "\n$ slipway install --package run.tar.zst --keep-cluster --name repro\n$ slipway test --name repro\n")

			r = run(t, e, "install", "REFUSED=install")
			require.Equal(t, 6, r.code)
			require.Contains(t, r.printed, "no run left a record")
			require.NotContains(t, r.calls, "slipway report")

			r = run(t, e, "install", "FAILS=report")
			require.Equal(t, 3, r.code, r.printed)
			require.Equal(t, e.system == "azure-pipelines", strings.Contains(r.printed, "##vso[task.setvariable variable=COLLECTED]yes\n"), "what there is is published")

			r = run(t, e, "install", "FAILS=engine bundle")
			require.Equal(t, 1, r.code)
			require.Contains(t, r.printed, "nothing was run\n")
			require.NotContains(t, r.calls, "dagger")
			require.NotContains(t, r.calls, "slipway")
		})
	}
}

// TestAPackageThatCannotBeMade hides neither the report nor how the job ended.
func TestAPackageThatCannotBeMade(t *testing.T) {
	e := examples(t)[0]
	bad := tools["slipway"]
	defer func() { tools["slipway"] = bad }()
	tools["slipway"] = strings.Replace(bad, "save*)", "save*) exit 2; ", 1)
	r := run(t, e, "install", "FAILS=install")
	require.Equal(t, 4, r.code, r.printed)
	require.Contains(t, r.printed, "the run r2 is not packed")
	require.Contains(t, r.shown, "the summary of collected/r2\n")
}

// TestAFailedUpgradeIsPacked, and a line says how it is reproduced.
func TestAFailedUpgradeIsPacked(t *testing.T) {
	e := examples(t)[0]
	was := tools["dagger"]
	defer func() { tools["dagger"] = was }()
	tools["dagger"] = strings.Replace(was, "what=install;", "what=upgrade;", 1)
	r := run(t, e, "install", "FAILS=upgrade")
	require.Equal(t, 4, r.code, r.printed)
	require.FileExists(t, filepath.Join(r.files, "run.tar.zst"))
	require.Contains(t, r.shown, "\n$ slipway reproduce --package run.tar.zst\n")
}

func TestTheShellThatTriesUpgrades(t *testing.T) {
	for _, e := range examples(t) {
		t.Run(e.system, func(t *testing.T) {
			r := run(t, e, "upgrades")
			require.Equal(t, 4, r.code, r.printed)
			require.Contains(t, r.calls, "slipway upgrade-matrix --config slipway.yaml --from 1.0.0,1.1.0 --to 2.0.0 --style graceful,in-place --shard 1/2 --out collected/upgrades\n")
			require.NotContains(t, r.shown, "mx-0")
			require.Contains(t, r.shown, "| 1.0.0 | 2.0.0 | 50 | graceful | none | upgraded  |\n| 1.1.0 | 2.0.0 | 50 | graceful | none | failed ORC-005 |\n")
			require.Regexp(t, `(?s)With upgrades/mx-1 of this job,.*\n\$ slipway reproduce --package run\.tar\.zst\n.*With upgrades/mx-2 of this job,.*\n\$ slipway upgrade-matrix --config 'slipway\.yaml' --from '1\.1\.0' --to '2\.0\.0' --scale 50 --style 'in-place' --faults 'none'\n`, r.shown)
			require.FileExists(t, filepath.Join(r.files, "upgrades/mx-1/run.tar.zst"))
		})
	}
}
