# What `make scan` asks of Terraform roots.
plugin "terraform" {
  enabled = true
  preset  = "all"
}
