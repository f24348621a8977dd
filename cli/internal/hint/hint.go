// Package hint completes the commands in messages, so that they work on what the
// command line worked on.
package hint

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/module"
	"github.com/slipway-sh/slipway/config/deployments"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// InstallAgain ends the remedy of a step that an install runs.
const InstallAgain = "run again: slipway install"

// For returns what completes the commands in a text for people, such as a remedy,
// with the flags by which cmd's command line chose what to work on: a command that is
// copied from there works on the same. A command that does not know a flag, or has it
// already, is left as it is, as is a quoted word: it may be a name that others chose, such as that
// of a file that says "slipway status", and is one word of a shell only as it stands.
func For(cmd *cobra.Command, stores map[string]store.Opener) func(string) string {
	command := regexp.MustCompile(`\b(slipway|dagger call) ([a-z]+(?:-[a-z]+)*)\b[^;,)#\n]*`)
	return func(text string) string {
		switch cmd.Name() {
		case "validate", "render": // which find before an install what it would
			text = replace(text, "run slipway install again", "run "+cmd.CommandPath()+" again", -1)
		case "upgrade", "rollback": // which run an install's steps
			text = replace(text, InstallAgain, "run the same command again", -1)
		}
		var out strings.Builder
		end := 0
		for _, m := range command.FindAllStringSubmatchIndex(masked(text), -1) {
			out.WriteString(text[end:m[0]])
			end = m[1]
			program, name, rest := text[m[2]:m[3]], text[m[4]:m[5]], text[m[5]:m[1]]
			out.WriteString(complete(cmd, stores, program, name, rest))
		}
		return out.String() + text[end:]
	}
}

// complete is a command of program, with rest behind its name.
func complete(cmd *cobra.Command, stores map[string]store.Opener, program, name, rest string) string {
	other, _, err := cmd.Root().Find([]string{name})
	if err != nil || other == cmd.Root() {
		return program + " " + name + rest
	}
	if words := strings.Fields(masked(rest)); program == "slipway" && len(words) > 0 {
		if below, _, err := other.Find(words[:1]); err == nil && below != other { // slipway config migrate
			other, name, rest = below, name+" "+words[0], strings.TrimPrefix(rest, " "+words[0])
		}
	}
	found := rest
	var before, after string // the function that dagger calls
	for _, f := range given(cmd.Flags(), stores, program) {
		value := fault.Quote(f.value)
		switch {
		case other.Flag(f.name) == nil || has(found, f.name):
		case f.name == "deployment" && has(found, "config"):
			rest = replace(rest, "--config FILE", "--deployment "+value, 1)
		case program == "slipway" || !slices.Contains(shared(), f.name):
			after += " --" + f.name + " " + value
		default:
			if slices.Contains([]string{"registry-auth", "state-key", "state-credentials", "secrets"}, f.name) {
				value = fault.Quote("file:" + f.value) // dagger's secrets are named by where they are
			}
			before += " --" + f.name + " " + value
		}
	}
	return program + before + " " + name + after + rest
}

// masked is text of the same length in which nothing can be found in quoted words, as fault.Quote
// makes them. One begins behind a blank, a "=" or an escaped quote of the same word: all else are
// apostrophes.
func masked(text string) string {
	out := []byte(text)
	for i := 0; i < len(out); i++ {
		if out[i] != '\'' || i > 0 && !strings.ContainsRune(" \t\n=(", rune(text[i-1])) && !strings.HasSuffix(text[:i], `\'`) {
			continue
		}
		n := strings.IndexByte(text[i+1:], '\'')
		if n < 0 {
			break
		}
		for end := i + n + 1; i < end; i++ {
			out[i] = '_'
		}
		out[i] = '_'
	}
	return string(out)
}

// replace is strings.Replace outside of quoted words.
func replace(text, old, by string, n int) string {
	var out strings.Builder
	hidden, end := masked(text), 0
	for ; n != 0; n-- {
		i := strings.Index(hidden[end:], old)
		if i < 0 {
			break
		}
		out.WriteString(text[end:end+i] + by)
		end += i + len(old)
	}
	return out.String() + text[end:]
}

// has reports whether a command has the flag already.
func has(command, flag string) bool {
	return slices.ContainsFunc(strings.Fields(masked(command)), func(word string) bool {
		name, _, _ := strings.Cut(word, "=")
		return name == "--"+flag
	})
}

// shared are the flags that all functions of the Dagger module have in common;
// dagger has them before the function.
func shared() []string {
	return []string{"bundle", "bundle-digest", "bundle-key", "lock", "registry", "registry-auth", "state", "state-key", "state-credentials", "secrets"}
}

// option is a flag with a value.
type option struct{ name, value string }

// given are the flags with which a command of program works on what the command line
// in set says. In the Dagger module only some of them are what the user gave: the
// files are elsewhere. A URL that is refused, since it may hold a password, is not
// among them. A stored deployment is a file for dagger, however it was chosen.
func given(set *pflag.FlagSet, stores map[string]store.Opener, program string) []option {
	names := []string{"config", "name", "state"}
	if !module.Active() {
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
			if _, err := store.CheckURL(value, store.Options{Openers: stores}); err != nil {
				continue
			}
		}
		out = append(out, option{name, value})
	}
	return out
}
