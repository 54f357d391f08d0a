"""How pairun asks servers: requests, downloads, the cluster's API server."""
