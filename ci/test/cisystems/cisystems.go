// Package cisystems reads the examples for CI systems: what they say, and the shell in them.
package cisystems

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rhysd/actionlint"
	"go.yaml.in/yaml/v3"
)

// Example is the pipeline of one system.
type Example struct {
	System string
	File   string // below the repository's root
	Jobs   []Job  // in the order of the pipeline
}

// Job is what one machine does.
type Job struct {
	Name  string
	Shell []Script
}

// Script is a script of a job.
type Script struct {
	Text   string
	Always bool // it runs after others have failed, too
}

// Read reads the examples below the repository's root and fails where one of them is not as
// its system wants it.
func Read(root string) ([]Example, error) {
	var all []Example
	for _, e := range []struct {
		system, file string
		read         func(root string, text []byte) ([]Job, error)
	}{
		{"github-actions", "slipway.yaml", github},
		{"gitlab-ci", ".gitlab-ci.yml", gitlab},
		{"jenkins", "Jenkinsfile", jenkins},
		{"azure-pipelines", "azure-pipelines.yml", azure},
	} {
		file := filepath.Join("examples/ci", e.system, e.file)
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		jobs, err := e.read(root, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, Example{System: e.system, File: file, Jobs: jobs})
	}
	return all, nil
}

// github checks a workflow with actionlint.
func github(root string, text []byte) ([]Job, error) {
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{ConfigFile: filepath.Join(root, "ci/test/cisystems/testdata/actionlint.yaml")})
	if err != nil {
		return nil, err
	}
	found, err := linter.Lint("platform.yaml", text, nil)
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, p := range found {
		problems = append(problems, p)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	workflow, _ := actionlint.Parse(text)
	var out []Job
	for _, name := range slices.Sorted(maps.Keys(workflow.Jobs)) {
		job := Job{Name: name}
		for _, s := range workflow.Jobs[name].Steps {
			if run, ok := s.Exec.(*actionlint.ExecRun); ok {
				job.Shell = append(job.Shell, Script{Text: run.Run.Value, Always: s.If != nil && strings.Contains(s.If.Value, "always()")})
			}
		}
		out = append(out, job)
	}
	return out, nil
}

// strict reads YAML into a value that has every key that may be there.
func strict(text []byte, into any) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	return d.Decode(into)
}

// gitlab reads the jobs of a pipeline.
func gitlab(_ string, text []byte) ([]Job, error) {
	type scripts struct {
		Extends      string   `yaml:"extends"`
		BeforeScript []string `yaml:"before_script"`
		Script       []string `yaml:"script"`
		AfterScript  []string `yaml:"after_script"`
	}
	var all map[string]scripts
	if err := yaml.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	var out []Job
	for _, name := range slices.Sorted(maps.Keys(all)) {
		own := all[name]
		if len(own.Script) == 0 { // variables, or what jobs extend
			continue
		}
		base, found := all[own.Extends]
		if own.Extends != "" && !found {
			return nil, fmt.Errorf("%s extends %s, which is not there", name, own.Extends)
		}
		out = append(out, Job{Name: name, Shell: []Script{ // the system makes one script each of them
			{Text: strings.Join(slices.Concat(base.BeforeScript, own.BeforeScript, own.Script), "\n")},
			{Text: strings.Join(slices.Concat(base.AfterScript, own.AfterScript), "\n"), Always: true},
		}})
	}
	return out, nil
}

// azure reads a pipeline, against the keys of Azure's that it uses.
func azure(_ string, text []byte) ([]Job, error) {
	type branches struct {
		Include []string `yaml:"include"`
	}
	var p struct {
		Trigger struct {
			Branches branches `yaml:"branches"`
		} `yaml:"trigger"`
		Schedules []struct {
			Cron        string   `yaml:"cron"`
			DisplayName string   `yaml:"displayName"`
			Branches    branches `yaml:"branches"`
			Always      bool     `yaml:"always"`
		} `yaml:"schedules"`
		Variables map[string]string `yaml:"variables"`
		Jobs      []struct {
			Job       string `yaml:"job"`
			Condition string `yaml:"condition"`
			Pool      struct {
				Name string `yaml:"name"`
			} `yaml:"pool"`
			TimeoutInMinutes int `yaml:"timeoutInMinutes"`
			Strategy         struct {
				Parallel int `yaml:"parallel"`
			} `yaml:"strategy"`
			Steps []struct {
				Checkout, Bash, Task, Publish string
				Artifact                      string
				DisplayName                   string `yaml:"displayName"`
				Condition                     string
				Inputs                        map[string]string
			} `yaml:"steps"`
		} `yaml:"jobs"`
	}
	if err := strict(text, &p); err != nil {
		return nil, err
	}
	var out []Job
	for _, j := range p.Jobs {
		if !regexp.MustCompile(`^\w+$`).MatchString(j.Job) {
			return nil, errors.New("each job wants a name")
		}
		job := Job{Name: j.Job}
		for i, s := range j.Steps {
			kinds := 0
			for _, kind := range []string{s.Checkout, s.Bash, s.Task, s.Publish} {
				if kind != "" {
					kinds++
				}
			}
			if kinds != 1 || (s.Artifact != "") != (s.Publish != "") || (s.Inputs != nil) != (s.Task != "") {
				return nil, fmt.Errorf("step %d of %s is not one of checkout, bash, task and publish, with what belongs to it", i+1, j.Job)
			}
			if s.Bash != "" {
				job.Shell = append(job.Shell, Script{Text: s.Bash, Always: strings.Contains(s.Condition, "always()")})
			}
		}
		out = append(out, job)
	}
	return out, nil
}

var (
	literal = regexp.MustCompile(`(?s)'''(.*?)'''|'([^'\n]*)'`)
	block   = regexp.MustCompile(`^(pipeline|options|triggers|environment|stages|steps|post|always|stage|agent|when|matrix|axes|axis)\b`)
	step    = regexp.MustCompile(`^(sh|junit|archiveArtifacts|disableConcurrentBuilds|timeout|label|cron|triggeredBy|name|values|SLIPWAY_CONFIG)\b`)
	stage   = regexp.MustCompile(`^stage\(«(\d+)»\) \{$`)
)

// jenkins reads a declarative pipeline: its blocks are known and closed, its statements those
// that it uses. A stage with steps is a job.
func jenkins(_ string, text []byte) ([]Job, error) {
	var strs []string
	plain := literal.ReplaceAllStringFunc(string(text), func(s string) string {
		strs = append(strs, strings.Trim(s, "'"))
		return fmt.Sprintf("«%d»", len(strs)-1)
	})
	plain = regexp.MustCompile(`(?m)//.*$`).ReplaceAllString(plain, "")
	var open []string
	var out []Job
	for n, line := range strings.Split(plain, "\n") {
		line = strings.TrimSpace(line)
		name := regexp.MustCompile(`^\w*`).FindString(line)
		switch {
		case line == "", line == "agent none":
		case line == "}":
			if len(open) == 0 {
				return nil, fmt.Errorf("line %d closes nothing", n+1)
			}
			open = open[:len(open)-1]
		case strings.HasSuffix(line, "{"):
			if !block.MatchString(line) {
				return nil, fmt.Errorf("line %d: %q is no block", n+1, line)
			}
			open = append(open, name)
			if m := stage.FindStringSubmatch(line); m != nil {
				at, _ := strconv.Atoi(m[1]) // digits
				out = append(out, Job{Name: strs[at]})
			}
		case name == "agent" && strings.HasSuffix(line, "}"):
		case !step.MatchString(line):
			return nil, fmt.Errorf("line %d: %q is no statement", n+1, line)
		case name == "sh":
			var at int
			if _, err := fmt.Sscanf(line, "sh «%d»", &at); err != nil {
				return nil, fmt.Errorf("line %d: sh takes one text: %w", n+1, err)
			}
			in := open[len(open)-1]
			if in != "steps" && in != "always" || len(out) == 0 {
				return nil, fmt.Errorf("line %d: sh belongs into steps or always", n+1)
			}
			job := &out[len(out)-1]
			job.Shell = append(job.Shell, Script{Text: strs[at], Always: in == "always"})
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("%s is not closed", strings.Join(open, ", "))
	}
	return slices.DeleteFunc(out, func(j Job) bool { return len(j.Shell) == 0 }), nil
}
