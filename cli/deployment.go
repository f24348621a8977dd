package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/deployments"
	"github.com/slipway-sh/slipway/fault"
)

// envDeployment names the deployment to work on, where no flag does.
const envDeployment = "SLIPWAY_DEPLOYMENT"

// codeNotItsName: the name in a configuration that is kept is not the one that it
// is kept under, so that its state would be another deployment's.
const codeNotItsName fault.Code = "CFG-011"

// configurationFlags declares the flags that say which configuration is taken; see
// choose.
func configurationFlags(set *pflag.FlagSet, t *target) {
	t.flags = set
	set.StringVarP(&t.config, "config", "c", "", "the deployment's configuration, YAML; - is standard input; every setting has a default")
	set.StringVar(&t.deployment, "deployment", "", "a deployment of slipway configure, by name; env "+envDeployment)
}

// choose decides which configuration is taken: the file of --config, or the one
// that is kept under the name of --deployment; else the one kept under --name, if
// there is one; without --name that of the environment, or the current one of
// slipway use. In the Dagger module nothing is kept. Of one that the command line
// does not name a line tells, on w.
func (t *target) choose(w io.Writer) error {
	if os.Getenv(moduleEnv) != "" || t.byName {
		return nil
	}
	switch {
	case t.config != "" && t.deployment != "":
		return errUsage{errors.New("give either --config or --deployment")}
	case t.deployment != "" && t.name != "" && t.name != t.deployment:
		return errUsage{fmt.Errorf("--deployment is %s and --name is %s; give one of them: a deployment that is kept has its name", t.deployment, t.name)}
	case t.deployment == "" && t.flags != nil && t.flags.Changed("deployment"):
		return errUsage{errors.New("--deployment is empty; give a name")}
	case t.config != "":
		return nil
	}
	folder, err := deployments.Default()
	if err != nil {
		return err
	}
	name, how, err := t.chosen(folder)
	if err != nil || name == "" {
		return err
	}
	file, err := folder.Find(name)
	if err != nil && how == envDeployment {
		err = fmt.Errorf("%s: %w", envDeployment, err)
	}
	if err != nil {
		return err
	}
	t.deployment, t.config, t.byName = name, file, true
	if how != "" {
		fmt.Fprintf(w, "slipway: deployment %s (chosen with %s; --deployment chooses another)\n", name, how)
	}
	return nil
}

// chosen is the name of the deployment that is kept and taken, and how it was
// chosen if not with --deployment; no name: none that is kept.
func (t *target) chosen(folder deployments.Folder) (name, how string, err error) {
	if t.deployment != "" {
		return t.deployment, "", nil
	}
	if t.name != "" {
		there, err := folder.Has(t.name)
		if !there {
			return "", "", err
		}
		return t.name, "", nil
	}
	if name := os.Getenv(envDeployment); name != "" {
		return name, envDeployment, nil
	}
	name, err = folder.Current()
	return name, "slipway use", err
}

// itsName refuses a configuration that is kept under another name than its own.
func (t *target) itsName(cfg *config.Config) error {
	if !t.byName || cfg.Global.Name == t.deployment {
		return nil
	}
	return &fault.Fault{Code: codeNotItsName, Class: fault.Usage, Op: "read " + t.config,
		Fix: fmt.Sprintf("set global.name to %s there, or rename the file to %s.yaml", t.deployment, cfg.Global.Name),
		Err: fmt.Errorf("it is kept as deployment %s, and global.name in it is %s: its state would be that one's", t.deployment, cfg.Global.Name)}
}
