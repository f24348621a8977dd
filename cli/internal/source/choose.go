package source

import (
	"fmt"
	"io"
	"os"

	"github.com/slipway-sh/slipway/cli/internal/module"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config/deployments"
	"github.com/slipway-sh/slipway/config/document"
)

// choose decides which configuration a command works with: the file of --config, or the one that is
// stored under --name, if there is one; without either that of the environment, or the
// current one of slipway use. In the Dagger module nothing is stored. When the command line
// does not name it, a line on w does.
func (s *Source) choose(w io.Writer) error {
	switch {
	case s.Stored: // it was chosen before
		return nil
	case s.Name == "" && s.flags != nil && s.flags.Changed("name"): // as "$NAME" is where NAME is not set
		return usage.Errorf("--name is empty; give a name")
	case module.Active() || s.File != "":
		return nil
	}
	folder, err := deployments.Default()
	if err != nil {
		return err
	}
	name, how, err := s.chosen(w, folder)
	if err != nil || name == "" {
		return err
	}
	file, err := folder.Find(name)
	if err != nil && how == EnvDeployment {
		err = fmt.Errorf("%s: %w", EnvDeployment, err)
	}
	if err != nil {
		return err
	}
	s.Deployment, s.File, s.Stored = name, file, true
	if how != "" {
		fmt.Fprintf(w, "slipway: deployment %s (chosen with %s; --name chooses another)\n", name, how)
	}
	return nil
}

// chosen is the name of the stored deployment that is taken, and how it was chosen if not
// with --name; no name: no stored one. A name that is like a stored one may be mistyped,
// which a line on w says.
func (s *Source) chosen(w io.Writer, folder deployments.Folder) (name, how string, err error) {
	if s.Name != "" {
		there, err := folder.Has(s.Name)
		if there || err != nil {
			return s.Name, "", err
		}
		stored, err := folder.Names()
		if near := document.Nearest(s.Name, stored); near != "" {
			fmt.Fprintf(w, "slipway: no configuration is stored as %s, so the defaults apply; did you mean %s?\n", document.Quote(s.Name), near)
		}
		return "", "", err
	}
	if name := os.Getenv(EnvDeployment); name != "" {
		return name, EnvDeployment, nil
	}
	name, err = folder.Current()
	return name, "slipway use", err
}
