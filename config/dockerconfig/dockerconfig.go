// Package dockerconfig knows what is secret in docker's config.json.
package dockerconfig

import "encoding/json"

// Secrets calls add with each secret in text: passwords and tokens, and user and password as
// they are written together, which is in base64. In text that is none of docker's it finds none.
func Secrets(text []byte, add func(string)) {
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
