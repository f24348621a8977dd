package progress

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Terminal returns the options for w: a live display if w is a terminal that supports
// cursor movement and is not shared. In CI terminals are logs, and a Dagger session
// has a display of its own, so neither gets one. NO_COLOR only turns colours off.
func Terminal(w io.Writer, getenv func(string) string) Options {
	file, ok := w.(*os.File)
	switch {
	case !ok || !term.IsTerminal(int(file.Fd())):
		return Options{}
	case getenv("TERM") == "" || getenv("TERM") == "dumb":
		return Options{}
	case getenv("CI") != "" && getenv("CI") != "false":
		return Options{}
	case getenv("DAGGER_SESSION_PORT") != "":
		return Options{}
	}
	return Options{
		Live:  true,
		Color: getenv("NO_COLOR") == "",
		Size: func() (int, int) {
			width, height, err := term.GetSize(int(file.Fd()))
			if err != nil {
				return 0, 0
			}
			return width, height
		},
	}
}
