"""One module per part of the API; each handler reads the request, asks a service, and shapes the answer."""
