terraform {
  required_version = ">= 1.11.4, < 1.12"

  # A run puts another one in its place, which keeps the state in the deployment's.
  backend "local" {}
}
