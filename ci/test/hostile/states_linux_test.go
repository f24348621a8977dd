package hostile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages/contract"
)

// recorded is the run that a state has.
const recorded = "20260102-030405-abcdef"

// keys are where the key of a state is in the engine's containers.
var keys = []string{"/slipway/state.key"}

// reading is what reads a state for commands such as report, runs, status and save. Each writes
// its answer to a file.
func reading(backups bool) []command {
	of := func(args ...string) command {
		return from(append([]string{"state", "--root", "state"}, args...), keys, rules{broken: true})
	}
	if backups {
		return []command{of("--result=../out/backups", "backups"), of("--result=../out/backup", "backup", `{"id":"`+recorded+`"}`)}
	}
	return []command{
		of("--result=../out/shown", "show"), of("--result=../out/runs", "runs"), of("--result=../out/run", "run", `{"id":"`+recorded+`"}`),
		of("--result=../out/id", "report", `{"path":"../out/report"}`),
	}
}

// record is the record of a run with this in each text.
func record(t *testing.T, text string) []byte {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := &report.Run{
		ID: recorded, Workflow: config.Install, Deployment: "shop" + text, Provider: "local" + text, Slipway: "1" + text, Engine: "2" + text,
		Platform: report.Platform{Name: "shop" + text, Version: "1.0.0" + text, From: "x" + text}, Started: at, Finished: at, Outcome: report.Failed, Exit: fault.Preflight,
		Fault: &fault.Fault{Code: "INF-003", Op: "look" + text, Fix: "slipway x" + text, Err: errors.New("why" + text)}, Error: "it failed" + text, Commands: []string{"slipway status" + text}, Guidance: "Look." + text,
		Diagnosis: []report.Diagnosis{{Summary: "it is so" + text, App: "web" + text, Details: []string{"x" + text}}}, Warnings: []report.Warning{{Summary: "beware" + text, Fix: "do" + text}},
		Apps:  []report.App{{Name: "web" + text, Namespace: "shop" + text, Sync: "Synced" + text, Health: "Degraded" + text, Cause: "why" + text}},
		Links: []report.Link{{Name: "web" + text, URL: "javascript:alert(1)" + text}}, Lock: "lock" + text,
	}
	r.Plan([]pipeline.Node{{Key: pipeline.Key{Stage: "a" + text, Name: "b"}}})
	r.Steps[0].Error, r.Steps[0].Log, r.Steps[0].Status = "x"+text, "../../../../secret", pipeline.Failed
	data, err := r.Encode()
	require.NoError(t, err)
	return data
}

const (
	of     = "runs/" + recorded + "/"
	newest = "000000000001"
)

// states are cases of what somebody put into a bucket or volume with a deployment's state.
func states() []testCase {
	var out []testCase
	add := func(name, tries string, make func(t *testing.T, s sandbox, files map[string][]byte)) {
		out = append(out, testCase{name: "state/" + name, tries: tries, commands: reading(strings.Contains(name, "backup") || strings.Contains(name, "installed")), make: func(t *testing.T, s sandbox) {
			files := map[string][]byte{of + report.RecordFile: record(t, ""), of + "config.yaml": []byte("{}"), "latest/" + newest: []byte(recorded + "\n"), of + "steps/a.b/log.txt": []byte("log\n")}
			make(t, s, files)
			for name, data := range files {
				if data != nil {
					s.write(t, "state/"+name, data)
				}
			}
		}})
	}
	put := func(name, tries, file, text string) {
		add(name, tries, func(_ *testing.T, _ sandbox, files map[string][]byte) { files[file] = []byte(text) })
	}
	add("none", "the state as it should be", func(*testing.T, sandbox, map[string][]byte) {})
	for name, text := range map[string]string{
		"escapes": "\x1b[31m\x1b]0;x\a", "C1 controls": "\u009b31m\u009d0;x\u009c", "bidirectional text": "\u202e\u2066", "markup": "<script>alert(1)</script>\"'`", "Markdown": "](javascript:x) ![x](http://canary.example/x.png)\n# x",
		"variables": "${SECRET_TOKEN}$SECRET_TOKEN$(touch @ROOT@/tmp/ran)`touch @ROOT@/tmp/ran`", "line breaks": "\r\nerror XXX-001: x\n", "zero": "\x00",
	} {
		add("record with "+name, "the texts of a record have "+name, func(t *testing.T, s sandbox, files map[string][]byte) {
			files[of+report.RecordFile] = record(t, s.fill(text))
			files[of+"steps/a.b/log.txt"] = []byte(text)
			files[of+"hooks/x.txt"] = []byte(text)
		})
	}
	for name, text := range map[string]string{
		"torn": `{"version": 1, "steps": [`, "empty": "", "null": "null", "list": "[]", "newer": `{"version": 99}`, "deep": strings.Repeat("[", 200_000), "numbers": `{"version": 1e99, "exit": 99999999999999999999}`,
		"other types": `{"version": 1, "id": [], "steps": {"a": 1}, "started": "never"}`, "twice": `{"version": 1, "version": 2, "outcome": "succeeded", "outcome": "running"}`,
		"without an end": `{"version": 1, "id": "` + recorded + `", "workflow": "install", "outcome": "running", "steps": [{"stage": "../../..", "step": "secret", "status": "running"}]}`,
	} {
		put("record: "+name, "the record of a run is none", of+report.RecordFile, text)
	}
	for name, text := range map[string]string{"parent": "../../secret", "absolute": "@SECRET@", "folder": "..", "empty": "", "hidden": ".x", "lines": recorded + "\n../../secret", "escapes": "\x1b[31m", "long": strings.Repeat("x", 5000)} {
		put("last run: "+name, "the last run is no run", "latest/"+newest, text)
	}
	for name, text := range map[string]string{
		"command": "cmd:touch @ROOT@/tmp/ran", "file": "file:@SECRET@", "variable": "${SECRET_TOKEN}",
	} {
		put("configuration: "+name, "the configuration of a run has a "+name, of+"config.yaml", `{"apiVersion": "slipway.sh/v1", "smtp": {"host": "a", "from": "a@b.c", "username": "u", "password": "`+text+`"}}`)
	}
	put("runtime state: aliases", "what is known of the deployment is an alias of itself", "state/"+newest+".yaml", aliases())
	put("runtime state: newer", "what is known of the deployment is of a newer version, with an escape", "state/"+newest+".yaml", "version: 99\nprovider: \"\\e[31m\"\n")
	put("runtime state: number", "its version is no number", "state/"+newest+".yaml", "version: \"\\e[31m\"\n")
	put("lock: torn", "the lock is torn", "lock/"+newest+".json", "{")
	put("lock: highest", "the lock has the highest number", "lock/999999999999.json", `{"state": "held", "holder": {"user": "\u001b[31m", "host": "x", "run": "../../secret"}}`)
	put("journal: torn", "an attempt at a step is torn", "journal/a.b/"+newest+".json", `{"stage": `)
	put("journal: escapes", "an attempt at a step writes to the terminal", "journal/a.b/"+newest+".json", `{"deployment": "shop", "run": "`+recorded+`", "stage": "\u001b[31m", "step": "\u202e", "status": "\u009b", "fault": {"code": "\u001b"}}`)
	put("backup: torn", "the index of a backup is torn", "backups/"+recorded+"/backup.json", "{")
	put("backup: path", "the id of a backup leads out", "backups/"+recorded+"/backup.json", `{"id": "../../../secret", "data": [{"name": "../../x", "file": "@SECRET@"}]}`)
	put("installed: torn", "the release that was installed is torn", "installed/"+newest+".json", "{")
	put("installed: path", "the release that was installed is elsewhere", "installed/"+newest+".json", `{"digest": "sha256:../../../secret", "release": {"key": "../../secret"}}`)
	put("waits: torn", "what a step waits for is torn", of+"steps/a.b/waits.json", "[{")
	add("large log", "a log is large", func(_ *testing.T, _ sandbox, files map[string][]byte) {
		files[of+"steps/a.b/log.txt"] = []byte(strings.Repeat("\x1b[31mx\n", 1<<18))
	})
	add("many runs", "there are many runs, none with a record", func(_ *testing.T, _ sandbox, files map[string][]byte) {
		for i := range 100 {
			files[fmt.Sprintf("runs/20260102-030405-%06x/%s", i, report.RecordFile)] = []byte("{")
		}
	})
	for name, file := range map[string]string{"record": of + report.RecordFile, "log": of + "steps/a.b/log.txt", "configuration": of + "config.yaml", "last run": "latest/" + newest, "runtime state": "state/" + newest + ".yaml", "backup": "backups/x/backup.json"} {
		at := func(s sandbox) string { return s.path("work/state/" + file) }
		add("link: "+name, "a file of the state is a link to one of the user", func(t *testing.T, s sandbox, files map[string][]byte) {
			files[file] = nil
			require.NoError(t, os.MkdirAll(filepath.Dir(at(s)), 0o755))
			require.NoError(t, os.Symlink(s.path("secret"), at(s)))
		})
		add("pipe: "+name, "a file of the state is a pipe", func(t *testing.T, s sandbox, files map[string][]byte) {
			files[file] = nil
			require.NoError(t, os.MkdirAll(filepath.Dir(at(s)), 0o755))
			require.NoError(t, syscall.Mkfifo(at(s), 0o644))
		})
	}
	add("link: folder", "the folder of a run is that of the user", func(t *testing.T, s sandbox, files map[string][]byte) {
		require.NoError(t, os.MkdirAll(s.path("work/state/runs"), 0o755))
		require.NoError(t, os.Symlink(s.root, s.path("work/state/runs/20260102-030405-000001")))
		files["latest/"+newest] = []byte("20260102-030405-000001\n")
	})
	add("names", "names of objects lead out and write to the terminal", func(t *testing.T, s sandbox, _ map[string][]byte) {
		for _, name := range []string{"runs/\x1b[31m/report.json", `runs/..\..\x/report.json`, of + "..__0x2f__..__0x2f__secret", of + "a\nb", "runs/.hidden/report.json", "lock/\u202e.json", of + strings.Repeat("n", 250)} {
			s.write(t, "state/"+name, []byte("{}"))
		}
	})
	return append(out, plans()...)
}

func aliases() string {
	text := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 'b'; i < 'k'; i++ {
		text += fmt.Sprintf("%c: &%c [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", i-1), 9), ", "))
	}
	return text
}

// plans are cases of plans that somebody put in the place of the one that was approved.
func plans() []testCase {
	digest := strings.Repeat("a", 64)
	var out []testCase
	for name, text := range map[string]string{
		"another": `{"version": 2, "digest": "sha256:` + digest + `", "deployment": "shop", "workflow": "destroy", "destructive": ["everything"]}`,
		"torn":    `{"version": 2, `, "empty": "", "newer": `{"version": 99, "digest": "sha256:` + digest + `"}`, "list": "[]", "deep": strings.Repeat(`{"a":`, 100_000),
		"escapes":  `{"version": 2, "digest": "\u001b[31m", "deployment": "\u202e", "workflow": "\u009b", "refused": [{"what": "\u001b[31m"}]}`,
		"commands": `{"version": 2, "digest": "sha256:` + digest + `", "workflow": "install; touch @ROOT@/tmp/ran", "basis": {"configuration": "$(touch @ROOT@/tmp/ran)"}}`,
	} {
		cmd := from([]string{"dry-run", "--root", "state", "--platform", "release", "request.json", "../out/plan.json"}, append([]string{"request.json.1"}, keys...), rules{writes: []string{"state"}})
		out = append(out, testCase{name: "plan/" + name, tries: "a plan is in the place of the one that was approved", says: "PLN-002", commands: []command{cmd}, make: func(t *testing.T, s sandbox) {
			s.write(t, "state/plans/"+recorded+"."+digest+".json", []byte(text))
			for name, text := range linked {
				s.write(t, "release/"+name, []byte(text))
			}
			s.write(t, "request.json", request(t, "sha256:"+digest))
		}})
	}
	return out
}

// request asks for what an install would do, if that is the plan of the digest.
func request(t *testing.T, approved string) []byte {
	t.Helper()
	cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nglobal: {name: shop}\n"), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	data, err := json.Marshal(contract.PlanRequest{
		Workflow: config.Install, Run: recorded, ConfigText: cfg.Canonical(), Approved: approved,
		Inputs: contract.Inputs{Environment: contract.Environment{Cluster: providers.Cluster{Addons: &providers.Addons{}}}, ReleaseDigest: "sha256:r", ImagesDigest: "i"},
	})
	require.NoError(t, err)
	return data
}
