package packing

import (
	"encoding/base64"

	"github.com/slipway-sh/slipway/config"
)

// References are the places where a configuration finds secrets, by setting.
func References(cfg *config.Config) map[string]config.SecretRef {
	all := map[string]config.SecretRef{
		"tls.key": cfg.TLS.Key, "smtp.password": cfg.SMTP.Password, "observability.password": cfg.Observability.Password,
		"git.password": cfg.Git.Password, "git.sshKey": cfg.Git.SSHKey, "state.key": cfg.State.Key,
		"advanced.save.key": cfg.Advanced.Save.Key,
	}
	for name, ref := range cfg.Platform.Secrets {
		all["platform.secrets."+name] = ref
	}
	for name, ref := range cfg.State.Credentials {
		all["state.credentials."+name] = ref
	}
	for _, h := range cfg.Hooks {
		for name, ref := range h.Secrets {
			all["hooks."+h.Name+".secrets."+name] = ref
		}
	}
	for setting, ref := range all {
		if ref == "" {
			delete(all, setting)
		}
	}
	return all
}

// decoded is what is in base64; empty if it is not.
func decoded(s string) string {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return ""
	}
	return string(b)
}
