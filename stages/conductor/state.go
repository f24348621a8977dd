package conductor

import (
	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/stages/contract"
)

// State says where the deployment's state is: in its volume (the zero value) or in a bucket.
type State struct {
	// URL is that of the bucket, with all keys below the deployment's name.
	URL string
	// Bucket is the same without the deployment's name.
	Bucket string
	// Credentials are those for the bucket, by the provider's variables.
	Credentials map[string]*dagger.Secret
	// Key encrypts the deployment's secrets in the bucket. Nil: where the cluster is
	// a service of Slipway one is generated, and stored in the state volume.
	Key *dagger.Secret
}

// credentialsFile is where a container finds credentials that are a file.
const credentialsFile = "/slipway/credentials.json"

// filed reports whether a variable of credentials names a file that holds them.
func filed(variable string) bool { return variable == "GOOGLE_APPLICATION_CREDENTIALS" }

// access is what the deployment's containers get to reach its state, and to tell that
// the process called origin, unless that is empty, started them.
func (s State) access(environment contract.Environment, origin string) containers.Access {
	a := containers.Access{Env: map[string]string{}, Secrets: map[string]*dagger.Secret{}, Files: map[string]*dagger.Secret{}}
	if origin != "" {
		a.Env[contract.OriginVariable] = origin
	}
	if s.URL == "" {
		return a
	}
	a.Env[contract.StateURLVariable] = s.URL
	for name, secret := range s.Credentials {
		if filed(name) {
			a.Env[name], a.Files[credentialsFile] = credentialsFile, secret
			continue
		}
		a.Secrets[name] = secret
	}
	if s.Key != nil {
		a.Files[contract.StateKeyFile] = s.Key
	} else if environment.OwnsNodes() || environment.Existed() { // of which the state holds no secret
		a.Env[contract.StateMakeKeyVariable] = "1"
	}
	return a
}
