package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/fault"
)

// The codes of this package's faults.
const (
	// CodeUnreadable: a file or directory that was named cannot be read.
	CodeUnreadable fault.Code = "CFG-003"
	// CodeInvalid: the configuration has problems. All of them are listed, each
	// with its line.
	CodeInvalid fault.Code = "CFG-001"
	// CodeNewer: the configuration was written for another version of the schema
	// than this program knows, a newer one as a rule. It is left as it is.
	CodeNewer fault.Code = "CFG-002"
)

// Problem is one thing that is wrong with a config.
type Problem = document.Problem

// Invalid is every problem of a config, in the order of its lines.
type Invalid = document.Invalid

// Options configures Load. The zero value is ready to use.
type Options struct {
	// File names the file in messages; "the configuration" when empty.
	File string
	// Name replaces the deployment's name unless it is empty; it is validated
	// like the one in the file.
	Name string
	// StateURL replaces the URL of the deployment's state unless it is empty; it is
	// validated like the one in the file.
	StateURL string
	// Env looks up an environment variable that a value refers to. Nil: values are
	// taken as they are.
	Env func(name string) (string, bool)
	// Migrated is called with what a migration changed; it may be nil.
	Migrated func([]Change)
	// Stores are the kinds of buckets that can store state, by the scheme of their
	// URLs, each with the variables that may hold credentials for it. Store validates
	// such a URL. Nil: everything is valid.
	Stores map[string][]string
	Store  func(url string) error
	// Providers are the names of the providers that can be chosen; any when empty.
	Providers []string
	// DefaultProvider is the provider of a file that names none.
	DefaultProvider string
	// Section validates the section of the chosen provider. The fields of the
	// problems that it returns are relative to the section; Load completes them
	// with lines. Nil: every section is valid.
	Section func(provider string, section json.RawMessage) []Problem
	// Steps returns the steps, "stage/name", of each workflow with the chosen
	// provider, whose section is valid; "stage/*" stands for those that the platform
	// release decides, which CheckHooks checks. It is only called if there are hooks.
	// Nil: hooks may name any step.
	Steps func(*Config) (map[string][]string, error)
}

// Default returns the config of an empty file, without a provider.
func Default() *Config {
	return &Config{
		APIVersion: APIVersion,
		Global:     Global{Name: "slipway", Domain: "slipway.test", Scale: 50},
		TLS:        TLS{Mode: SelfSigned},
		Platform:   Platform{Release: "1.0.0"},
		Advanced:   Advanced{Timeouts: Timeouts{App: Duration(5 * time.Minute), Step: Duration(20 * time.Minute)}, MissingImages: RefuseMissing},
	}
}

// complete fills in defaults that depend on other fields.
func (c *Config) complete() {
	if c.Global.Admin.Email == "" {
		c.Global.Admin.Email = "admin@" + c.Global.Domain
	}
	c.SMTP.complete()
	c.Git.complete()
}

// Load reads a config, migrates it if it is of an older version, fills in what it
// leaves out and validates it. All problems are reported at once, by a fault
// CFG-001 that wraps an *Invalid, with the lines of the file as it is; a config for
// a newer program is refused with CFG-002.
func Load(data []byte, opts Options) (*Config, error) {
	file := opts.File
	if file == "" {
		file = "the configuration"
	}
	doc, problems := document.Parse(data)
	if doc == nil {
		return nil, invalid(file, problems)
	}
	changes, problems, err := migrated(doc, problems, file)
	if err != nil {
		return nil, err
	}
	if len(changes) > 0 && opts.Migrated != nil {
		opts.Migrated(changes)
	}
	c := Default()
	c.Provider = opts.DefaultProvider
	providers := opts.Providers
	if name := cmp.Or(doc.Text("provider"), opts.DefaultProvider); len(providers) == 0 && name != "" {
		providers = []string{name}
	}
	if opts.Env != nil {
		doc.Interpolate(opts.Env)
	}
	sections, more := doc.Decode(c, providers...)
	c.sections, c.doc, c.file, c.expanded, c.flags = sections, doc, file, doc.Expanded(), map[string]string{}
	if opts.Name != "" {
		c.Global.Name, c.flags["global.name"] = opts.Name, "--name"
	}
	if opts.StateURL != "" {
		c.State.URL, c.flags["state.url"] = opts.StateURL, "--state"
	}
	problems = append(problems, more...)
	c.complete()
	problems = append(problems, c.problems(providers, opts)...)
	own := c.sectionProblems(opts, providers)
	problems = append(problems, own...)
	var steps map[string][]string
	if opts.Steps != nil && len(c.Hooks) > 0 && len(own) == 0 && slices.Contains(providers, c.Provider) {
		var err error
		if steps, err = opts.Steps(c); err != nil {
			return nil, fmt.Errorf("list the steps of provider %s: %w", c.Provider, err)
		}
	}
	problems = append(problems, c.hookProblems(steps)...)
	if len(problems) == 0 {
		return c, nil
	}
	return nil, c.invalid(doc.Merge(c.clarify(problems, opts.Env != nil)...))
}

// clarify adds hints about renamed fields and variables to the problems. It removes
// values of variables, which may be secrets.
func (c *Config) clarify(problems []Problem, variables bool) []Problem {
	for i := range problems {
		p := &problems[i]
		if to := moved(p.Field); to != "" && p.Got == document.Unknown {
			p.Want, p.Meant = document.In(to), to
			if c.doc.Has(to) {
				p.Got, p.Want = "an older name of "+to+", which is there too", "one of them"
			}
		}
		switch text := c.doc.Text(p.Field); {
		case slices.Contains(c.expanded, p.Field):
			if strings.HasPrefix(p.Got, `"`) {
				p.Got = document.Quote(text) + " (what that makes is not shown)"
			}
		case document.Refers(text) && variables && c.flags[p.Field] == "" && strings.HasPrefix(p.Got, `"`):
			p.Want += "; variables are not replaced in this field"
		}
	}
	return problems
}

// sectionProblems lets the chosen provider validate its section.
func (c *Config) sectionProblems(opts Options, providers []string) []Problem {
	_, decoded := c.sections[c.Provider]
	if opts.Section == nil || !slices.Contains(providers, c.Provider) || !decoded && !c.doc.Empty(c.Provider) {
		return nil
	}
	in := func(field string) string {
		if field == "" {
			return ""
		}
		return c.Provider + "." + field
	}
	problems := opts.Section(c.Provider, c.Section(c.Provider))
	for i := range problems {
		p := &problems[i]
		p.Field, p.Meant, p.Cause = cmp.Or(in(p.Field), c.Provider), in(p.Meant), in(p.Cause)
		p.Line = 0 // of the section, not of the file
		if !c.doc.Has(c.Provider) {
			p.Line = c.doc.Line("provider")
		}
	}
	return problems
}

// Decode reads a provider's section strictly into the struct that into points to, and
// checks what the tags of its fields ask for; see document.List.Check. The problems are
// for Options.Section.
func Decode(section json.RawMessage, into any) []Problem {
	doc, problems := document.Parse(section)
	if doc == nil {
		return problems
	}
	_, more := doc.Decode(into)
	l := document.List(append(problems, more...))
	l.Check("", into)
	return l
}

// invalid is the fault of problems. If a flag has set a field, its problem names the flag instead
// of a line of the file.
func (c *Config) invalid(problems []Problem) error {
	var flags []string
	for i := range problems {
		p := &problems[i]
		if flag := c.flags[p.Field]; flag != "" {
			p.Field, p.Line = flag, 0
			flags = append(flags, flag)
		}
	}
	if len(flags) == 0 || len(flags) < len(problems) {
		return invalid(c.file, problems)
	}
	return &fault.Fault{Code: CodeInvalid, Class: fault.Usage, Op: "read the command line", Err: &Invalid{Problems: problems},
		Fix: "correct " + strings.Join(flags, " and ") + ", then run the same command again"}
}

func invalid(file string, problems []Problem) error {
	fix := "correct what is listed in " + file + ", then run the same command again; slipway validate checks it without starting anything"
	return &fault.Fault{Code: CodeInvalid, Class: fault.Usage, Op: "read " + file, Fix: fix, Err: &Invalid{Problems: problems}}
}

// Problems returns the problems that err reports; nil when it reports none.
func Problems(err error) []Problem {
	if e, ok := errors.AsType[*Invalid](err); ok {
		return e.Problems
	}
	return nil
}
