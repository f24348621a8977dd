package configure

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
	"github.com/slipway-sh/slipway/config/form"
)

// What a person wants done with a file that is complete.
const (
	write  = "write"
	edit   = "edit"
	change = "change"
	quit   = "quit"
)

// review shows the file, what it changes and what is wrong with it, and asks what to
// do, until that is neither a look nor an edit.
func (c *Command) review(ctx context.Context, io console.Streams, f *form.Form, text []byte) ([]byte, string, error) {
	for {
		problems := c.check(text)
		name := ""
		if cfg, err := c.source.Parse(text, nil); err == nil {
			name = cfg.Global.Name
		}
		file, err := c.destination(name)
		if err != nil {
			return nil, "", err
		}
		fmt.Fprintf(io.Screen(), "\n%s\n\n", strings.TrimRight(string(text), "\n"))
		there, err := readIfThere(file)
		if err != nil { // which the one who writes it says again
			fmt.Fprintf(io.Screen(), "%s\n", err)
		}
		question := "Write it to standard output?"
		switch {
		case file == "":
		case there == nil:
			question = "Write it to " + file + "?"
		case bytes.Equal(there, text):
			question = file + " is the same already. Write it again?"
		default:
			question = "Replace " + file + " with it?"
			c.changes(io.Screen(), file, there, text)
		}
		options := []answers.Option{{Answer: write, Label: "Yes"}, {Answer: edit, Label: "Edit it first"}, {Answer: change, Label: "No, change answers"}, {Answer: quit, Label: "No, write nothing"}}
		if editor() == "" {
			options = slices.Delete(options, 1, 2)
		}
		if len(problems) > 0 {
			question = "It cannot be written as it is."
			fmt.Fprintf(io.Screen(), "\n%s\n", (&config.Invalid{Problems: problems}).Error())
			options = options[1:]
		}
		what, err := f.Choose(ctx, question, options)
		if err != nil || what == write || what == quit {
			return text, what, err
		}
		if what == change {
			if _, err := answers.NewDraft(nil, text); err == nil {
				return text, what, nil
			}
			fmt.Fprintln(io.Screen(), "It is not YAML as it is: edit it first.")
			continue
		}
		edited, err := c.edit(ctx, io, text)
		switch {
		case ctx.Err() != nil:
			return nil, "", context.Cause(ctx)
		case err != nil:
			fmt.Fprintf(io.Screen(), "The editor: %s\n", err)
		default:
			text = edited
		}
	}
}

// edit opens the file in the user's editor.
func (c *Command) edit(ctx context.Context, io console.Streams, text []byte) ([]byte, error) {
	dir, err := os.MkdirTemp("", "slipway-configure-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "slipway.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", editor()+` "$1"`, "sh", file)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = io.In, io.Terminal, io.Terminal
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w; nothing of it was taken", editor(), err)
	}
	return bounded.File(file, bounded.Written)
}

// editor is the command of the user's editor, or of one that is there; empty when none
// is.
func editor() string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if command := os.Getenv(name); command != "" {
			return command
		}
	}
	for _, command := range []string{"editor", "vi", "nano"} {
		if _, err := exec.LookPath(command); err == nil {
			return command
		}
	}
	return ""
}
