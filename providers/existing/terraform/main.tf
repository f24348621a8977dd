# The cluster is there and stays there: what is known of it is recorded here, as every
# provider records it. Nothing in this root reaches the cluster.

resource "terraform_data" "cluster" {
  input = {
    name     = var.deployment
    endpoint = var.api_endpoint
  }
}

resource "terraform_data" "storage" {
  input = {
    class = var.storage_class
  }
}

resource "terraform_data" "load_balancer" {
  # Services of type LoadBalancer get an address from whatever the cluster has for them.
  input = {
    kind = "cloud"
  }
}
