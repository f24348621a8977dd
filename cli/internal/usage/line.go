package usage

import (
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// EnvModule is set where the Dagger module runs this program: in a container, whose
// variables and files are not those of the module's caller.
const EnvModule = "SLIPWAY_MODULE"

// InModule reports whether this program runs for the Dagger module.
func InModule() bool { return os.Getenv(EnvModule) != "" }

// Line is a command line, for the commands that Slipway prints for people to copy. It chose what to
// work on; the zero value chose nothing.
type Line struct {
	Cmd    *cobra.Command
	Stores map[string]store.Opener // of buckets; see flags
}

// Command returns a command of slipway, such as "status --live", that works on what l works on: with
// the flags of l that the command knows and does not have.
func (l Line) Command(command string) string {
	out := "slipway " + command
	if l.Cmd == nil {
		return out
	}
	other, _, _ := l.Cmd.Root().Find(strings.Fields(command))
	for _, f := range l.flags() {
		if other.Flag(f.name) != nil && !strings.Contains(command, "--"+f.name+" ") {
			out += f.text
		}
	}
	return out
}

// Function is Command for a function of the Dagger module, which has the bucket of the state before
// its name.
func (l Line) Function(function string) string {
	before, after := "dagger call", ""
	for _, f := range l.flags() {
		if f.name == "state" {
			before += f.text
		} else {
			after += f.text
		}
	}
	name, rest, _ := strings.Cut(function, " ")
	return strings.TrimSuffix(before+" "+name+after+" "+rest, " ")
}

// Remedy returns fix with the flags of l that all commands of slipway in it have.
func (l Line) Remedy(fix string) string {
	if l.Cmd == nil {
		return fix
	}
	var out strings.Builder
	for _, f := range l.flags() {
		known := true
		for _, command := range commands.FindAllStringSubmatch(fix, -1) {
			other, _, _ := l.Cmd.Root().Find(strings.Fields(command[1]))
			known = known && other.Flag(f.name) != nil
		}
		if known {
			out.WriteString(f.text)
		}
	}
	return report.WithFlags(fix, strings.TrimPrefix(out.String(), " "))
}

// commands are those of slipway in a text, and the words behind each.
var commands = regexp.MustCompile(`\bslipway ([a-z -]+)`)

// Flags are the flags that other commands need to work on what l works on: "--name dev".
func (l Line) Flags() string {
	var out strings.Builder
	for _, f := range l.flags() {
		out.WriteString(f.text)
	}
	return strings.TrimPrefix(out.String(), " ")
}

// flag is a flag with its value, as words of a shell behind a blank.
type flag struct{ name, text string }

// flags are those with which l chose what to work on. In the Dagger module only some of them are what
// the user gave: the files are elsewhere. A URL that is refused, since it may hold a password, is not
// among them.
func (l Line) flags() []flag {
	if l.Cmd == nil {
		return nil
	}
	names := []string{"config", "name", "state"}
	if !InModule() {
		names = []string{"config", "name", "platform", "bundle", "bundle-digest", "bundle-key", "lock", "registry", "registry-auth", "state", "secrets"}
	}
	var out []flag
	for _, name := range names {
		f := l.Cmd.Flags().Lookup(name)
		switch {
		case f == nil || !f.Changed:
			continue
		case name == "state":
			if _, err := store.CheckURL(f.Value.String(), store.Options{Openers: l.Stores}); err != nil {
				continue
			}
		}
		out = append(out, flag{name, " --" + name + " " + fault.Quote(f.Value.String())})
	}
	return out
}
