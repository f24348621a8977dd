package main

import (
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
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
			var before, after string // the function that dagger calls
			for _, f := range given(set) {
				switch {
				case its.Lookup(f.Name) == nil || strings.Contains(found, "--"+f.Name):
				case program == "slipway" || !slices.Contains(origins(), f.Name):
					after += " --" + f.Name + " " + quoted(f.Value.String())
				default:
					before += " --" + f.Name + " " + quoted(f.Value.String())
				}
			}
			return program + before + " " + name + after + strings.TrimPrefix(found, program+" "+name)
		})
	}
}

// origins are the flags that say where images come from; dagger has them before
// the function.
func origins() []string { return []string{"bundle", "lock", "registry"} }

// given are the flags of a command line that say what it works on. In the Dagger
// module only some of them are what the user gave: the files are elsewhere.
func given(set *pflag.FlagSet) []*pflag.Flag {
	names := []string{"config", "name"}
	if os.Getenv(moduleEnv) == "" {
		names = append(append(names, "platform"), origins()...)
	}
	var out []*pflag.Flag
	for _, name := range names {
		if f := set.Lookup(name); f != nil && f.Changed {
			out = append(out, f)
		}
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
