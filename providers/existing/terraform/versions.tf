terraform {
  required_version = ">= 1.11.4, < 1.12"

  # The path comes with -backend-config: the deployment's state volume.
  backend "local" {}
}
