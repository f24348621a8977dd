package answers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
)

// Given is an answer from a flag or the environment.
type Given struct {
	Field  Field
	Answer string
	By     string // "--set", or the variable
}

// Assignments parses answers of the form field=answer, as in a flag; @file stands for the
// content of a file, @@ for a text that begins with @. It returns all problems.
func (s *Schema) Assignments(texts []string) ([]Given, []config.Problem) {
	var out []Given
	var problems []config.Problem
	for _, t := range texts {
		path, answer, ok := strings.Cut(t, "=")
		if !ok || path == "" {
			problems = append(problems, config.Problem{Field: path, Got: "no answer", Want: "field=answer, such as global.name=staging"})
			continue
		}
		f, wrong := s.Field(path)
		if wrong == nil {
			answer, wrong = f.content(answer)
		}
		if wrong != nil {
			problems = append(problems, *wrong)
			continue
		}
		out = append(out, Given{Field: f, Answer: answer, By: "--set"})
	}
	return out, problems
}

// content replaces @file with the content of the file.
func (f Field) content(answer string) (string, *config.Problem) {
	file, ok := strings.CutPrefix(answer, "@")
	switch {
	case !ok || f.Type != Text:
		return answer, nil
	case strings.HasPrefix(file, "@"):
		return file, nil
	}
	return f.read(file)
}

func (f Field) read(file string) (string, *config.Problem) {
	text, err := bounded.File(file, bounded.Written)
	if err != nil {
		return "", f.wrong(err.Error(), "the path of a file that can be read")
	}
	return string(text), nil
}

// Environment returns the answers in environment variables, and the names of variables
// that look like answers but match no field. components are those of the platform.
func (s *Schema) Environment(environ, components []string) (out []Given, unknown []string) {
	fields := map[string]Field{}
	all := s.Fields("")
	for _, c := range components {
		if f, wrong := s.Field(Enabled(c)); wrong == nil {
			all = append(all, f)
		}
	}
	for _, f := range all {
		fields[f.EnvName()] = f
	}
	for _, pair := range environ {
		name, answer, _ := strings.Cut(pair, "=")
		f, ok := fields[name]
		switch {
		case !strings.HasPrefix(name, config.EnvName("")+"_"), answer == "":
		case !ok:
			unknown = append(unknown, name)
		case f.Path == "apiVersion":
		default:
			if f.interpolate {
				answer = literal(answer)
			}
			out = append(out, Given{Field: f, Answer: answer, By: name})
		}
	}
	slices.SortFunc(out, func(a, b Given) int { return strings.Compare(a.By, b.By) })
	slices.Sort(unknown)
	return out, unknown
}

// Secret reports whether the field is a reference to a secret, or the answer may contain
// one by mistake. Such an answer must not be shown if it is rejected.
func (f Field) Secret(answer string) bool { return f.secret || strings.Contains(answer, "@") }

// Enabled returns the field that switches a component on or off.
func Enabled(component string) string { return "platform.components." + component + ".enabled" }

// Missing returns a problem for each required field that is not set, with the ways to
// answer it.
func Missing(d *Draft, must []Field) []config.Problem {
	var out []config.Problem
	for _, f := range must {
		if d.Has(f.Path) {
			continue
		}
		want := cmp.Or(strings.TrimSuffix(f.Help, "."), string(f.Type))
		if len(f.Options) > 0 {
			want = strings.Join(f.Options, ", ")
		}
		want = strings.Join(strings.Fields(want), " ") // in one line: a release's schema has this text
		out = append(out, config.Problem{Field: f.Path, Got: "no answer",
			Want: fmt.Sprintf("%s: --set %s=…, %s=… or a line in --answers", want, fault.Quote(f.Path), f.EnvName())})
	}
	return out
}
