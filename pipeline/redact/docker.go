package redact

import "encoding/json"

// DockerSecrets calls add with each secret in text, a config.json of docker's: passwords and tokens, and
// user and password as they are written together, which is in base64. In other text it finds none.
func DockerSecrets(text []byte, add func(string)) {
	var c struct {
		Auths map[string]struct{ Password, Auth, IdentityToken, RegistryToken string } `json:"auths"`
	}
	if json.Unmarshal(text, &c) != nil {
		return
	}
	for _, a := range c.Auths {
		for _, secret := range []string{a.Password, a.Auth, a.IdentityToken, a.RegistryToken} {
			if secret != "" {
				add(secret)
			}
		}
	}
}
