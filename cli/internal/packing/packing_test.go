package packing

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
)

const canary = "canary-7f3a91"

func TestAConfigurationKeepsPlacesAndLosesSecrets(t *testing.T) {
	var c cleaner
	c.known.Add(canary)
	text := `
platform:
  secrets: {adminPassword: "env:ADMIN_PASSWORD"}
  components:
    web: {values: {adminPassword: hunter2, existingSecret: my-secret, replicas: 2, note: "ask ` + canary + `", list: [{token: abc1}], pin: 1234}}
hooks:
  - name: backup
    script: PGPASSWORD=$PGPASSWORD pg_dump; TOKEN="${TOKEN}" x
    secrets: {PGPASSWORD: "file:~/pg"}
  - name: notify
    run: [curl, "https://me:` + `open-sesame@chat.example.com"]
`
	clean, hid, err := c.config([]byte(text))
	require.NoError(t, err)
	require.Equal(t, []string{
		"hooks[1].run[1]", "platform.components.web.values.adminPassword", "platform.components.web.values.list[0].token",
		"platform.components.web.values.note",
	}, hid)
	for _, secret := range []string{"hunter2", canary, "abc1", "open-sesame"} {
		require.NotContains(t, string(clean), secret)
	}
	for _, kept := range []string{"env:ADMIN_PASSWORD", "my-secret", "PGPASSWORD=$PGPASSWORD pg_dump", "file:~/pg", "replicas: 2"} {
		require.Contains(t, string(clean), kept)
	}
	for name, text := range map[string]string{
		"request.json": `{"values":{"adminPassword":"hunter2","n":["hunter2"],"token":"abc1"},"secrets":{"x":"env:X"},"secretName":"web","other":{"passwords":["abc"]}}`,
		"two.yaml":     "a: hunter2\n---\nb: {c: hunter2, token: abc1}\n---\nd: hunter2\n",
		"log.txt":      "tried hunter2\n",
	} {
		cleaned, err := c.file(name, []byte(text))
		require.NoError(t, err)
		for _, secret := range []string{"hunter2", "abc1", `"abc"`} {
			require.NotContains(t, string(cleaned), secret, name)
		}
		if name == "request.json" {
			require.Contains(t, string(cleaned), "env:X")
			require.Contains(t, string(cleaned), `"web"`)
		}
	}
	files := runpackage.Files{"release/values.yaml": {Data: []byte("a: hunter2")}}
	require.Empty(t, c.gate(files), "what a configuration says in clear text may be a word that the release has too")

	same := []byte("global: {name: shop}\n")
	clean, hid, err = c.config(same)
	require.NoError(t, err)
	require.Empty(t, hid)
	require.Equal(t, same, clean)
	_, _, err = c.config([]byte("a: [\n"))
	require.Error(t, err)
}

func TestFilesOfARunAreCleaned(t *testing.T) {
	var c cleaner
	c.known.Add(canary)
	inBase64 := base64.StdEncoding.EncodeToString([]byte(canary))
	for name, text := range map[string]string{
		"log.txt": "login with " + canary + "\nPGPASSWORD=hunter2 psql\n", "result.json": `{"a":["` + canary + `",1.50],"` + canary + `":{"b":"` + inBase64 + `","c":"PGPASSWORD=hunter2"}}`,
		"state.yaml": "a: " + canary + "\nb: [x, PGPASSWORD=hunter2]\n", "torn.json": `{"a":"` + canary + `","b":"PGPASSWORD=hunter2`, "two.json": `{} "` + canary + `" password=hunter2`,
	} {
		clean, err := c.file(name, []byte(text))
		require.NoError(t, err)
		for _, secret := range []string{canary, inBase64, "hunter2"} {
			require.NotContains(t, string(clean), secret, name)
		}
		require.Contains(t, string(clean), hidden, name)
		switch name {
		case "result.json":
			require.True(t, json.Valid(clean), "%s", clean)
			require.Contains(t, string(clean), "1.50", "numbers stay as they are")
		case "state.yaml":
			var v any
			require.NoError(t, yaml.Unmarshal(clean, &v), "%s", clean)
		}
	}
	for name, text := range map[string]string{"a.json": `{"b": 1,  "a": "x"}`, "a.yaml": "b: 1 # note\n", "a.bin": "\xff\xfe" + canary} {
		clean, err := c.file(name, []byte(text))
		require.NoError(t, err)
		require.Equal(t, text, string(clean), "nothing to clean, or nothing that can be")
	}

	p := packer{clean: cleaner{}, files: runpackage.Files{
		"release/values.yaml": {Data: []byte("password: " + canary)}, "run/core": {Data: []byte("\xff" + canary)},
		"run/report.html": {Data: []byte("<p>" + canary)}, "config.yaml": {Data: []byte("a: b")},
	}}
	require.NoError(t, p.gate(), "nothing is known")
	p.clean.known.Add(canary)
	err := p.gate()
	require.ErrorIs(t, err, &fault.Fault{Code: codeHeld})
	require.ErrorContains(t, err, "is in release/values.yaml, run/core")
	require.NotContains(t, err.Error(), canary)
	require.Equal(t, "<p>***", string(p.files["run/report.html"].Data))
}

// ran is the directory of a run with a step that failed.
func ran(t *testing.T, id string, outcome report.Outcome) string {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := report.Run{ID: id, Workflow: "install", Deployment: "shop", Outcome: outcome, Started: at, Steps: []report.Step{
		{Stage: "orchestrator", Step: "sync", Status: pipeline.Failed, Started: at, Finished: at.Add(time.Minute), Error: "login with " + canary,
			Fault: &fault.Fault{Code: "ORC-005", Class: fault.Step, Op: "sync", Err: os.ErrDeadlineExceeded}},
		{Stage: "orchestrator", Step: "projects", Status: pipeline.Failed, Started: at, Finished: at.Add(2 * time.Minute), Fault: &fault.Fault{Code: "PLT-017", Err: os.ErrClosed}},
	}, Fault: &fault.Fault{Code: "PLT-017", Err: os.ErrClosed}}
	text, err := r.Encode()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "steps/orchestrator.sync"), 0o755))
	for name, data := range map[string][]byte{"report.json": text, "report.html": []byte(canary), "config.yaml": []byte("a: " + canary), "steps/orchestrator.sync/log.txt": []byte(canary + "\n")} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return dir
}

// TestARecordNamesNoFile: a package is named for the user's deployment and the run that was asked for.
func TestARecordNamesNoFile(t *testing.T) {
	const id = "20260102-030405-abcdef"
	change := func(change func(*report.Run)) error {
		dir := ran(t, id, report.Failed)
		file := filepath.Join(dir, "report.json")
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		r, err := report.Decode(data)
		require.NoError(t, err)
		change(r)
		data, err = r.Encode()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, data, 0o600))
		p := packer{files: runpackage.Files{}}
		if err := p.runDir(id, dir, []byte("a: b\n")); err != nil {
			return err
		}
		p.describe()
		require.Equal(t, "slipway-shop-"+id+runpackage.Suffix, defaultFile("shop", p.info.Run))
		return nil
	}
	require.NoError(t, change(func(r *report.Run) { r.Deployment = "x/../../evil" }))
	for _, other := range []string{"x/../../evil", "20260102-030405-abcdee", ""} {
		require.ErrorContains(t, change(func(r *report.Run) { r.ID = other }), "it is the record of run")
	}
}

func TestTheReportIsMadeAnewFromWhatIsClean(t *testing.T) {
	const id = "20260102-030405-abcdef"
	p := packer{files: runpackage.Files{}}
	p.clean.known.Add(canary)
	require.NoError(t, p.runDir(id, ran(t, id, report.Failed), []byte("a: b\n")))
	for _, name := range []string{"report.html", "report.json", "junit.xml", "summary.md", "summary.txt", "config.yaml", "steps/orchestrator.sync/log.txt"} {
		text := p.files["run/"+name].Data
		require.NotEmpty(t, text, name)
		require.False(t, bytes.Contains(text, []byte(canary)), name)
	}
	require.Contains(t, string(p.files["run/report.html"].Data), "login with ***")
	require.Equal(t, "a: b\n", string(p.files["run/config.yaml"].Data))
	code, step := p.record.Failure()
	require.Equal(t, "ORC-005 orchestrator/sync", code+" "+step, "the one that failed first")

	err := p.runDir(id, ran(t, id, report.Running), []byte("a: b\n"))
	require.ErrorIs(t, err, &fault.Fault{Code: codeNotEnded})
	code, step = (&report.Run{Outcome: report.Interrupted, Steps: []report.Step{
		{Stage: "a", Step: "b", Status: pipeline.Succeeded}, {Stage: "a", Step: "c", Status: pipeline.Interrupted, Started: time.Now()},
	}}).Failure()
	require.Equal(t, " a/c", code+" "+step, "what ran when it was killed")
	code, step = (&report.Run{Outcome: report.Succeeded}).Failure()
	require.Empty(t, code+step)
}

// TestAPackageSaysWhatTheRunRanWith, whatever is at hand when it is made.
func TestAPackageSaysWhatTheRunRanWith(t *testing.T) {
	tools := map[string]string{"helm": "sha256:1", "slipway": "sha256:2"}
	d := &deployment.Deployment{Images: &containers.Images{
		Tools: tools, Refs: map[string]string{"gitea": "slipway.local/gitea@sha256:3"}, Digest: "sha256:b", Line: "sha256:l",
	}}
	for what, c := range map[string]struct {
		run   report.Run
		other bool
	}{
		"the same":       {report.Run{Images: "sha256:b", Lock: "sha256:old"}, false},
		"another bundle": {report.Run{Images: "sha256:a", Tools: tools, Lock: "sha256:l"}, true},
	} {
		c.run.Slipway, c.run.Engine = "v1", "v0.20.8"
		p := packer{deployment: d, record: &c.run, files: runpackage.Files{}}
		p.describe()
		require.NoError(t, p.images())
		require.Equal(t, c.other, p.info.OtherImages, what)
		require.Equal(t, "v0.20.8", p.info.Engine, what)
		want := DigestsOf(d.Images)
		if c.other {
			want = Digests{All: c.run.Images, Tools: c.run.Tools, Images: map[string]string{}}
		}
		var is Digests
		require.NoError(t, json.Unmarshal(p.files[runpackage.ImagesFile].Data, &is))
		require.Equal(t, want, is, what)
	}
}

func TestAPackageReplacesNothingElse(t *testing.T) {
	dir := t.TempDir()
	var b bytes.Buffer
	require.NoError(t, runpackage.Write(&b, runpackage.Info{Run: "r"}, runpackage.Files{"a": {}}, nil))
	file := filepath.Join(dir, "new", "run.tar.zst")
	require.NoError(t, put(file, b.Bytes()))
	require.NoError(t, put(file, b.Bytes()), "an earlier one")
	notes := filepath.Join(dir, "notes.tar.zst")
	require.NoError(t, os.WriteFile(notes, []byte("mine"), 0o600))
	for _, to := range []string{notes, filepath.Join(notes, "run.tar.zst"), dir} {
		require.ErrorIs(t, put(to, b.Bytes()), &fault.Fault{Code: atomicfile.CodeUnwritten}, to)
	}
	text, err := os.ReadFile(notes)
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
}

// Packed writes a package with a release and this configuration.
func packed(t *testing.T, change func(*runpackage.Info, runpackage.Files)) string {
	t.Helper()
	release := fstest.MapFS{"platform.yaml": {Data: []byte("name: shop\n"), Mode: 0o644}, "run.sh": {Data: []byte("#!/bin/sh\n"), Mode: 0o755}}
	digest, err := platform.Digest(release)
	require.NoError(t, err)
	info := runpackage.Info{Run: "r", Workflow: "install", Platform: runpackage.Platform{Name: "shop", Version: "1.0.0", Digest: digest}}
	files := runpackage.Files{runpackage.ConfigFile: {Data: []byte("apiVersion: slipway.sh/v1\n")}}
	require.NoError(t, files.Add(runpackage.ReleaseDir, release))
	change(&info, files)
	var b bytes.Buffer
	require.NoError(t, runpackage.Write(&b, info, files, nil))
	file := filepath.Join(t.TempDir(), "run.tar.zst")
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
	return file
}

func TestAPackageIsUnpackedOnce(t *testing.T) {
	t.Setenv("SLIPWAY_CACHE", t.TempDir())
	file := packed(t, func(*runpackage.Info, runpackage.Files) {})
	o, err := Open(file, "", nil)
	require.NoError(t, err)
	text, err := os.ReadFile(o.Config)
	require.NoError(t, err)
	require.Contains(t, string(text), "\napiVersion: slipway.sh/v1\n")
	before, err := os.Stat(o.Release)
	require.NoError(t, err)
	again, err := Open(file, "", nil)
	require.NoError(t, err)
	require.Equal(t, o.Release, again.Release)
	after, err := os.Stat(o.Release)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "what is right is left alone")
	require.NoError(t, os.WriteFile(filepath.Join(o.Release, "platform.yaml"), []byte("name: evil\n"), 0o600))
	_, err = Open(file, "", nil)
	require.NoError(t, err)
	text, err = os.ReadFile(filepath.Join(o.Release, "platform.yaml"))
	require.NoError(t, err)
	require.Equal(t, "name: shop\n", string(text), "what was altered is replaced")
	entries, err := os.ReadDir(filepath.Dir(o.Release))
	require.NoError(t, err)
	require.Len(t, entries, 2, "nothing is left beside it")

	parent := t.TempDir()
	mine, err := KeepRelease(file, o.Package, parent, false)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(mine, "platform.yaml"), []byte("name: mine\n"), 0o600))
	for range 2 {
		other, err := KeepRelease(file, o.Package, parent, false)
		require.NoError(t, err)
		require.Equal(t, mine+"-2", other, "what somebody changed is his")
	}
	text, err = os.ReadFile(filepath.Join(mine, "platform.yaml"))
	require.NoError(t, err)
	require.Equal(t, "name: mine\n", string(text))
}

func TestWhatNoDeploymentCanBeMadeFrom(t *testing.T) {
	t.Setenv("SLIPWAY_CACHE", t.TempDir())
	for says, change := range map[string]func(*runpackage.Info, runpackage.Files){
		"no value for what looked like a secret: platform.components.web": func(i *runpackage.Info, _ runpackage.Files) { i.Hidden = []string{"platform.components.web"} },
		"it is of a run that has no platform release (destroy)":           func(i *runpackage.Info, _ runpackage.Files) { i.Workflow, i.Platform.Digest = "destroy", "" },
		"its digest is not sha256:":                                       func(_ *runpackage.Info, f runpackage.Files) { f["release/more"] = runpackage.File{} },
		"is no digest of a release":                                       func(i *runpackage.Info, _ runpackage.Files) { i.Platform.Digest = "sha256:../../x" },
		"there is no configuration in it":                                 func(_ *runpackage.Info, f runpackage.Files) { delete(f, runpackage.ConfigFile) },
	} {
		_, err := Open(packed(t, change), "", nil)
		require.ErrorIs(t, err, &fault.Fault{Code: CodeIncomplete}, "%v", err)
		require.ErrorContains(t, err, says)
	}
}

// An empty step takes two bytes of a record, and hundreds of memory.
func TestARecordOfTooMuch(t *testing.T) {
	record, steps := runpackage.RunDir+"/"+report.RecordFile, strings.Repeat("{},", 200_000)
	for says, text := range map[string]string{
		"it has more than 250000 values": `{"version":1,"steps":[` + steps + `{}]}`,
		"decode run record":              `{"version":` + strings.Repeat("9", 1<<20) + `}`,
	} {
		o := Opened{Package: &runpackage.Package{Files: runpackage.Files{record: {Data: []byte(text)}, runpackage.ImagesFile: {Data: []byte("{}")}}}}
		_, _, err := o.Ran()
		require.ErrorIs(t, err, &fault.Fault{Code: CodeIncomplete})
		require.ErrorContains(t, err, says)
		require.Less(t, len(err.Error()), 5000)
	}
}

// TestNoVariableGetsIntoAPackagesConfiguration, also where a later command is given the unpacked file
// and knows nothing of the package, and whatever version the file is of.
func TestNoVariableGetsIntoAPackagesConfiguration(t *testing.T) {
	t.Setenv("SLIPWAY_CACHE", t.TempDir())
	for _, text := range []string{
		"apiVersion: slipway.sh/v1alpha1\nname: shop\ndomain: \"${CANARY:-good}.test\"\nadminEmail: a@b.test\nscale: small\n",
		"version: 1\nname: shop\ndomain: \"${CANARY:-good}.test\"\n",
		"apiVersion: slipway.sh/v1\nglobal: {domain: \"${CANARY:-good}.test\"}\nadvanced: {save: {key: env:KEY}}\n",
	} {
		o, err := Open(packed(t, func(_ *runpackage.Info, f runpackage.Files) {
			f[runpackage.ConfigFile] = runpackage.File{Data: []byte(text)}
		}), "", nil)
		require.NoError(t, err)
		got, err := os.ReadFile(o.Config)
		require.NoError(t, err)
		require.Contains(t, string(got), "\napiVersion: slipway.sh/v1\n")
		require.Contains(t, string(got), "$${CANARY:-good}.test")
		_, err = config.Load(got, config.Options{DefaultProvider: "local", Env: func(name string) (string, bool) {
			t.Errorf("%s is read", name)
			return "canary", true
		}})
		require.ErrorContains(t, err, "global.domain")
	}

	_, err := Open(packed(t, func(_ *runpackage.Info, f runpackage.Files) {
		f[runpackage.ConfigFile] = runpackage.File{Data: []byte("apiVersion: slipway.sh/v99\n")}
	}), "", nil)
	require.ErrorIs(t, err, &fault.Fault{Code: config.CodeNewer})
}
