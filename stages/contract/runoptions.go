package contract

// RunOptions are what a command line says of a run, besides the configuration, that steps take
// into account. They reach the wiring of the workflow as they are, in every process, so a new one
// is a field here, a flag, and the input of the step that reads it.
type RunOptions struct {
	// Adopt has a run take over what the platform is made of where it is there and
	// somebody else's, and a deployment of this name that the state does not know;
	// otherwise these end the run.
	Adopt bool `json:"adopt,omitempty"`
	// Definitions has a destroy take CustomResourceDefinitions along that the release keeps, or
	// that others use, with all objects of theirs.
	Definitions bool `json:"definitions,omitempty"`
	// Change says how an upgrade or a rollback is done.
	Change Change `json:"change,omitzero"`
}

// AsFlags are the flags of slipway plan that say the same; Change is in PlannedPath.Flags.
func (o RunOptions) AsFlags() (flags []string) {
	if o.Adopt {
		flags = append(flags, "--take-ownership")
	}
	if o.Definitions {
		flags = append(flags, "--crds")
	}
	return flags
}
