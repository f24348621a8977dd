package config

import "strconv"

// Profile is what a scale stands for: the resources that a provider must offer, and the
// sizes that the charts of the reference platform use.
type Profile struct {
	Scale int // 50, 100, …

	// Of the infrastructure: what the machine of provider local must have.
	CPUs      int
	MemoryGiB int
	DiskGiB   int

	// Of the platform.
	Replicas    int // of apps without state
	DatabaseGiB int // volume of the database
	GitGiB      int // volume of the git server
}

// Profiles returns the scale profiles, smallest first. At scale 50 the reference platform
// uses 3 GiB of memory and 6 GiB of disk, including images. The others add what their
// charts request and the sizes of their volumes.
func Profiles() []Profile {
	return []Profile{
		{Scale: 50, CPUs: 2, MemoryGiB: 4, DiskGiB: 10, Replicas: 1, DatabaseGiB: 1, GitGiB: 1},
		{Scale: 100, CPUs: 2, MemoryGiB: 8, DiskGiB: 40, Replicas: 2, DatabaseGiB: 20, GitGiB: 10},
		{Scale: 500, CPUs: 4, MemoryGiB: 12, DiskGiB: 90, Replicas: 2, DatabaseGiB: 50, GitGiB: 25},
		{Scale: 1000, CPUs: 8, MemoryGiB: 16, DiskGiB: 170, Replicas: 3, DatabaseGiB: 100, GitGiB: 50},
	}
}

// ProfileOf returns the profile of a scale, or the zero Profile if there is none.
func ProfileOf(scale int) Profile {
	for _, p := range Profiles() {
		if p.Scale == scale {
			return p
		}
	}
	return Profile{}
}

// Profile returns the profile of the config's scale.
func (c *Config) Profile() Profile { return ProfileOf(c.Global.Scale) }

// Name returns the profile's name in charts: its scale as text.
func (p Profile) Name() string { return strconv.Itoa(p.Scale) }
