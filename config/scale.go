package config

import "strconv"

// Profile is what a scale stands for: the resources that the machine of provider local must have.
type Profile struct {
	Scale     int // 50, 100, …
	CPUs      int
	MemoryGiB int
	DiskGiB   int
}

// Profiles returns the scale profiles, smallest first. At scale 50 the reference platform
// uses 3 GiB of memory and 6 GiB of disk, including images. The others add what their
// charts request and the sizes of their volumes.
func Profiles() []Profile {
	return []Profile{
		{Scale: 50, CPUs: 2, MemoryGiB: 4, DiskGiB: 10},
		{Scale: 100, CPUs: 2, MemoryGiB: 8, DiskGiB: 40},
		{Scale: 500, CPUs: 4, MemoryGiB: 12, DiskGiB: 90},
		{Scale: 1000, CPUs: 8, MemoryGiB: 16, DiskGiB: 170},
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
