# The node itself is a service that Slipway starts and stops with each run. What
# lasts is recorded here, as every provider records it.

resource "terraform_data" "cluster" {
  input = {
    name     = var.deployment
    endpoint = var.api_endpoint
  }

  # Another name is another cluster.
  triggers_replace = [var.deployment]
}

resource "terraform_data" "storage" {
  input = {
    class = var.storage_class
  }
}

resource "terraform_data" "load_balancer" {
  # Services of type LoadBalancer get the node's own address.
  input = {
    kind = "node"
  }
}
