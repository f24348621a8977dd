package progress

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Terminal are the options for w: a live display where w is a terminal that
// knows more than lines and that is ours alone. It is not in CI (whose terminals
// are logs) and not inside a Dagger session, which has a display of its own.
// NO_COLOR takes the colours away, nothing else.
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
