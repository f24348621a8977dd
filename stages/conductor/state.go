package conductor

import (
	"maps"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/stages/contract"
)

// State says where the deployment's state is: in its state volume, which is the
// zero value, or in a bucket.
type State struct {
	// URL is that of the bucket, with all keys below the deployment's name.
	URL string
	// Credentials are those for the bucket, by the variables that the provider
	// documents.
	Credentials map[string]*dagger.Secret
	// Key encrypts the deployment's secrets in the bucket. Nil: where the cluster is
	// a service of Slipway one is generated, and stored in the state volume.
	Key *dagger.Secret
}

// credentialsFile is where a container finds credentials that are a file.
const credentialsFile = "/slipway/credentials.json"

// filed reports whether a variable of credentials names a file that holds them.
func filed(variable string) bool { return variable == "GOOGLE_APPLICATION_CREDENTIALS" }

// access is what the deployment's containers get to reach its state.
func (s State) access(site contract.Site) containers.Access {
	if s.URL == "" {
		return containers.Access{}
	}
	a := containers.Access{
		Env:     map[string]string{contract.StateURLVariable: s.URL},
		Secrets: map[string]*dagger.Secret{}, Files: map[string]*dagger.Secret{},
	}
	for name, secret := range s.Credentials {
		if filed(name) {
			a.Env[name], a.Files[credentialsFile] = credentialsFile, secret
			continue
		}
		a.Secrets[name] = secret
	}
	if s.Key != nil {
		a.Files[contract.StateKeyFile] = s.Key
	} else if site.Node != nil {
		a.Env[contract.StateMakeKeyVariable] = "1"
	}
	return a
}

// withOrigin has containers tell which process started them.
func withOrigin(a containers.Access, origin string) containers.Access {
	if origin != "" {
		a.Env = maps.Clone(a.Env)
		if a.Env == nil {
			a.Env = map[string]string{}
		}
		a.Env[contract.OriginVariable] = origin
	}
	return a
}
