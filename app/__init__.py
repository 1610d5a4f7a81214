"""The service: HTTP, the queue, the store. Only here is FastAPI imported."""
