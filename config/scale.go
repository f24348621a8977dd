package config

// Profile is what a scale means. The numbers are requests of the platform, not
// limits of the program; a provider and the platform's charts read them.
type Profile struct {
	Name          string `json:"name"`
	Nodes         int    `json:"nodes"`         // worker nodes, where the provider makes them
	NodeCPU       int    `json:"nodeCPU"`       // cores of a node
	NodeMemoryGiB int    `json:"nodeMemoryGiB"` // memory of a node
	Replicas      int    `json:"replicas"`      // of apps without state
	DatabaseGiB   int    `json:"databaseGiB"`   // volume of the database
	GitGiB        int    `json:"gitGiB"`        // volume of the git server
}

// Profiles are the scale profiles, smallest first.
func Profiles() []Profile {
	return []Profile{
		{Name: "small", Nodes: 1, NodeCPU: 2, NodeMemoryGiB: 4, Replicas: 1, DatabaseGiB: 1, GitGiB: 1},
		{Name: "medium", Nodes: 3, NodeCPU: 4, NodeMemoryGiB: 16, Replicas: 2, DatabaseGiB: 20, GitGiB: 10},
		{Name: "large", Nodes: 6, NodeCPU: 8, NodeMemoryGiB: 32, Replicas: 3, DatabaseGiB: 100, GitGiB: 50},
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
