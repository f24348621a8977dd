package configure

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
	"github.com/slipway-sh/slipway/config/form"
)

// What a person wants done with a file that is complete.
const (
	write  = "write"
	change = "change"
	quit   = "quit"
)

// review shows the file, what it changes and what is wrong with it, and asks what to do.
func (c *Command) review(ctx context.Context, io console.Streams, f *form.Form, text []byte) (what string, err error) {
	name := ""
	if cfg, err := c.source.Parse(text, nil); err == nil {
		name = cfg.Global.Name
	}
	file, err := c.destination(name)
	if err != nil {
		return "", err
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
	options := []answers.Option{{Answer: write, Label: "Yes"}, {Answer: change, Label: "No, change answers"}, {Answer: quit, Label: "No, write nothing"}}
	if problems := c.check(text); len(problems) > 0 {
		question = "It cannot be written as it is."
		fmt.Fprintf(io.Screen(), "\n%s\n", (&config.Invalid{Problems: problems}).Error())
		options = options[1:]
	}
	return f.Choose(ctx, question, options)
}
