package contract

// RunOptions are what a command line says of a run, besides the configuration, that steps take
// into account. They reach the wiring of the workflow as they are, in every process, so a new one
// is a field here, a flag, and the input of the step that reads it.
type RunOptions struct {
	// Adopt makes a run take over the platform's objects that exist and that others own, and a
	// deployment of this name that the state does not know; otherwise these end the run.
	Adopt bool `json:"adopt,omitempty"`
	// Definitions makes a destroy also delete CustomResourceDefinitions that the release keeps, or
	// that others use, with all their objects.
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
