terraform {
  required_version = ">= 1.15.9, < 1.16"

  # A run puts another one in its place, which keeps the state in the deployment's.
  backend "local" {}
}
