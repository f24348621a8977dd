package config

// Profile is what a scale asks of a platform release: the charts of the reference
// platform are tested against it.
type Profile struct {
	Name        string
	Replicas    int // of apps without state
	DatabaseGiB int // volume of the database
	GitGiB      int // volume of the git server
}

// Profiles are the scale profiles, smallest first.
func Profiles() []Profile {
	return []Profile{
		{Name: "small", Replicas: 1, DatabaseGiB: 1, GitGiB: 1},
		{Name: "medium", Replicas: 2, DatabaseGiB: 20, GitGiB: 10},
		{Name: "large", Replicas: 3, DatabaseGiB: 100, GitGiB: 50},
	}
}

// Profile is what the config's scale means.
func (c *Config) Profile() Profile {
	for _, p := range Profiles() {
		if p.Name == c.Scale {
			return p
		}
	}
	return Profile{}
}
