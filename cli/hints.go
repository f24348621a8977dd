package cli

import (
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/config/deployments"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// addressed returns what completes the commands in a text for people, such as a
// remedy, with the flags by which the command line in set chose what to work on:
// a command that is copied from there works on the same. A command that does not
// know a flag, or has it already, is left as it is.
func addressed(set *pflag.FlagSet) func(string) string {
	command := regexp.MustCompile(`\b(slipway|dagger call) ([a-z]+)\b[^;,)#\n]*`)
	known := commands()
	return func(text string) string {
		return command.ReplaceAllStringFunc(text, func(found string) string {
			m := command.FindStringSubmatch(found)
			program, name := m[1], m[2]
			cmd, ok := known[name]
			if !ok {
				return found
			}
			its := pflag.NewFlagSet(name, pflag.ContinueOnError)
			cmd.flags(its)
			rest := strings.TrimPrefix(found, program+" "+name)
			var before, after string // the function that dagger calls
			for _, f := range given(set, program) {
				value := quoted(f.value)
				switch {
				case its.Lookup(f.name) == nil || has(found, f.name):
				case f.name == "deployment" && has(found, "config"):
					rest = strings.Replace(rest, "--config FILE", "--deployment "+value, 1)
				case program == "slipway" || !slices.Contains(shared(), f.name):
					after += " --" + f.name + " " + value
				default:
					if slices.Contains([]string{"state-key", "state-credentials", "secrets"}, f.name) {
						value = quoted("file:" + f.value) // dagger's secrets are named by where they are
					}
					before += " --" + f.name + " " + value
				}
			}
			return program + before + " " + name + after + rest
		})
	}
}

// has tells whether a command has the flag of that name already.
func has(command, flag string) bool {
	return slices.ContainsFunc(strings.Fields(command), func(word string) bool {
		name, _, _ := strings.Cut(word, "=")
		return name == "--"+flag
	})
}

// shared are the flags that all functions of the Dagger module have in common;
// dagger has them before the function.
func shared() []string {
	return []string{"bundle", "lock", "registry", "state", "state-key", "state-credentials", "secrets"}
}

// option is a flag with a value.
type option struct{ name, value string }

// given are the flags with which a command of program works on what the command line
// in set says. In the Dagger module only some of them are what the user gave: the
// files are elsewhere. A URL that is refused, since it may hold a password, is not
// among them. What is kept for slipway is a file for dagger, however it was chosen.
func given(set *pflag.FlagSet, program string) []option {
	names := []string{"config", "name", "state"}
	if os.Getenv(moduleEnv) == "" {
		names = append([]string{"config", "deployment", "name", "platform"}, shared()...)
	}
	var out []option
	for _, name := range names {
		f := set.Lookup(name)
		if f == nil {
			continue
		}
		value := f.Value.String()
		if name == "deployment" && program != "slipway" {
			if folder, err := deployments.Default(); err == nil && folder.File(value) != "" {
				out = append(out, option{"config", folder.File(value)})
			}
			continue
		}
		if d := set.Lookup("deployment"); !f.Changed || name == "name" && d != nil && d.Changed {
			continue
		}
		if name == "state" {
			if _, err := store.CheckURL(value, store.Options{Openers: stores()}); err != nil {
				continue
			}
		}
		out = append(out, option{name, value})
	}
	return out
}

// quoted is s as one word of a shell.
func quoted(s string) string {
	if regexp.MustCompile(`^[\w@%+=:,./~-]+$`).MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
