package source

import (
	"fmt"
	"io"
	"os"

	"github.com/slipway-sh/slipway/cli/internal/module"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config/deployments"
)

// choose decides which configuration is taken: the file of --config, or the one
// that is stored under the name of --deployment; else the one stored under --name, if
// there is one; without --name that of the environment, or the current one of
// slipway use. In the Dagger module nothing is stored. When the command line does
// not name it, a line on w does.
func (s *Source) choose(w io.Writer) error {
	if module.Active() || s.Stored {
		return nil
	}
	switch {
	case s.File != "" && s.Deployment != "":
		return usage.Errorf("give either --config or --deployment")
	case s.Deployment != "" && s.Name != "" && s.Name != s.Deployment:
		return usage.Errorf("--deployment is %s and --name is %s; give one of them: a deployment that is kept has its name", s.Deployment, s.Name)
	case s.Deployment == "" && s.flags != nil && s.flags.Changed("deployment"):
		return usage.Errorf("--deployment is empty; give a name")
	case s.File != "":
		return nil
	}
	folder, err := deployments.Default()
	if err != nil {
		return err
	}
	name, how, err := s.chosen(folder)
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
		fmt.Fprintf(w, "slipway: deployment %s (chosen with %s; --deployment chooses another)\n", name, how)
	}
	return nil
}

// chosen is the name of the stored deployment that is taken, and how it was chosen if
// not with --deployment; no name: no stored one.
func (s *Source) chosen(folder deployments.Folder) (name, how string, err error) {
	if s.Deployment != "" {
		return s.Deployment, "", nil
	}
	if s.Name != "" {
		there, err := folder.Has(s.Name)
		if !there {
			return "", "", err
		}
		return s.Name, "", nil
	}
	if name := os.Getenv(EnvDeployment); name != "" {
		return name, EnvDeployment, nil
	}
	name, err = folder.Current()
	return name, "slipway use", err
}
