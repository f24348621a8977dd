package cisystems

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
{"cell": {"from": "1.1.0", "to": "2.0.0", "scale": 50, "style": "graceful", "faults": "none"}, "deployment": "mx-1", "outcome": "failed", "code": "ORC-005", "again": "slipway upgrade-matrix --from 1.1.0", "package": "$PWD/collected/upgrades/mx-1/run.tar.zst", "reproduce": "slipway reproduce --package $PWD/collected/upgrades/mx-1/run.tar.zst"},
{"cell": {"from": "1.1.0", "to": "2.0.0", "scale": 50, "style": "in-place", "faults": "none"}, "deployment": "mx-2", "outcome": "failed", "code": "MTX-003", "again": "slipway upgrade-matrix --from 1.1.0 --style in-place"}]}
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
func run(t *testing.T, e Example, job string, env ...string) ran {
	t.Helper()
	dir, work := t.TempDir(), t.TempDir()
	for name, text := range tools {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	examples, err := filepath.Abs(filepath.Join(root, "examples"))
	require.NoError(t, err)
	require.NoError(t, os.Symlink(examples, filepath.Join(work, "examples")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "runs"), []byte(`[{"id": "r1", "workflow": "install", "outcome": "failed"}]`), 0o644))
	system := map[string]string{"github-actions": "GITHUB_STEP_SUMMARY=" + filepath.Join(dir, "summary"), "azure-pipelines": "TF_BUILD=True"}[e.System]
	out, text := ran{files: filepath.Join(work, "collected")}, new(strings.Builder)
	for _, j := range e.Jobs {
		if strings.Replace(j.Name, "shard", "upgrades", 1) != job {
			continue
		}
		for _, s := range j.Shell {
			if out.code != 0 && !s.Always {
				continue
			}
			file := filepath.Join(dir, "script")
			require.NoError(t, os.WriteFile(file, []byte(s.Text), 0o755))
			cmd := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", file)
			cmd.Dir, cmd.Stdout, cmd.Stderr = work, text, text
			cmd.Env = append([]string{
				"PATH=" + dir + ":" + os.Getenv("PATH"), "CALLS=" + filepath.Join(dir, "calls"), "RUNS=" + filepath.Join(dir, "runs"), system,
				"SLIPWAY_CONFIG=slipway.yaml", "FAILS=nothing", "REFUSED=nothing",
				"CI_NODE_INDEX=1", "CI_NODE_TOTAL=2", "SYSTEM_JOBPOSITIONINPHASE=1", "SYSTEM_TOTALJOBSINPHASE=2", "SHARD=" + map[bool]string{true: "1", false: "1/2"}[e.System == "jenkins"],
			}, env...)
			if err := cmd.Run(); err != nil && out.code == 0 {
				out.code = cmd.ProcessState.ExitCode()
			}
		}
	}
	if moved := filepath.Join(work, "collected-1"); e.System == "jenkins" && job == "upgrades" {
		out.files = moved
	}
	read := func(file string) string {
		data, _ := os.ReadFile(file) // empty if it is not there
		return string(data)
	}
	out.calls, out.printed = read(filepath.Join(dir, "calls")), text.String()
	switch e.System {
	case "github-actions":
		out.shown = read(filepath.Join(dir, "summary"))
	case "azure-pipelines":
		if strings.Contains(out.printed, "##vso[task.uploadsummary]"+filepath.Join(work, "collected/summary.md")+"\n") {
			require.Contains(t, out.printed, "##vso[task.setvariable variable=COLLECTED]yes\n")
			out.shown = read(filepath.Join(work, "collected/summary.md"))
		}
	default:
		out.shown = out.printed
	}
	require.True(t, strings.HasSuffix(out.calls, "make engine-stop\n"), out.calls)
	return out
}

func examples(t *testing.T) []Example {
	t.Helper()
	all, err := Read(root)
	require.NoError(t, err)
	require.Len(t, all, 4)
	return all
}

func TestTheShellThatInstallsAndTests(t *testing.T) {
	for _, e := range examples(t) {
		t.Run(e.System, func(t *testing.T) {
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
			require.Equal(t, e.System == "azure-pipelines", strings.Contains(r.printed, "##vso[task.setvariable variable=COLLECTED]yes\n"), "what there is is published")

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
		t.Run(e.System, func(t *testing.T) {
			r := run(t, e, "upgrades")
			require.Equal(t, 4, r.code, r.printed)
			require.Contains(t, r.calls, "slipway upgrade-matrix --config slipway.yaml --from 1.0.0,1.1.0 --to 2.0.0 --style graceful,in-place --shard 1/2 --out collected/upgrades\n")
			require.NotContains(t, r.shown, "mx-0")
			require.Contains(t, r.shown, "| 1.0.0 | 2.0.0 | 50 | graceful | none | upgraded  |\n| 1.1.0 | 2.0.0 | 50 | graceful | none | failed ORC-005 |\n")
			require.Regexp(t, `(?s)With upgrades/mx-1 of this job,.*\n\$ slipway reproduce --package run\.tar\.zst\n.*With upgrades/mx-2 of this job,.*\n\$ slipway upgrade-matrix --from 1\.1\.0 --style in-place\n`, r.shown)
			require.FileExists(t, filepath.Join(r.files, "upgrades/mx-1/run.tar.zst"))
		})
	}
}

func TestWhatASystemWouldRefuse(t *testing.T) {
	for what, c := range map[string]struct {
		read           func(string, []byte) ([]Job, error)
		file, old, new string
		says           string
	}{
		"an unknown runner":       {github, "github-actions/slipway.yaml", "debian-12]", "debian-13]", "debian-13"},
		"an unknown context":      {github, "github-actions/slipway.yaml", "matrix.shard }}/", "matrix.shards }}/", "shards"},
		"no job to extend":        {gitlab, "gitlab-ci/.gitlab-ci.yml", "extends: .slipway", "extends: .slipways", ".slipways, which is not there"},
		"two kinds of a step":     {azure, "azure-pipelines/azure-pipelines.yml", "        artifact: install\n", "", "step 7 of install is not one of"},
		"an unknown key of a job": {azure, "azure-pipelines/azure-pipelines.yml", "timeoutInMinutes", "timeout", "timeout"},
		"an open block":           {jenkins, "jenkins/Jenkinsfile", "environment {", "environment {\n    environment {", "pipeline is not closed"},
		"an unknown statement":    {jenkins, "jenkins/Jenkinsfile", "junit testResults", "junits testResults", "is no statement"},
		"sh outside of steps":     {jenkins, "jenkins/Jenkinsfile", "steps {", "stages {", "sh belongs into steps"},
	} {
		t.Run(what, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, "examples/ci", c.file))
			require.NoError(t, err)
			require.Contains(t, string(text), c.old)
			_, err = c.read(root, []byte(strings.Replace(string(text), c.old, c.new, 1)))
			require.ErrorContains(t, err, c.says)
		})
	}
}
