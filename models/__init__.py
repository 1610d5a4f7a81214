"""Neural models and everything computed from them (never pydantic models).

Pure torch and transformers: nothing here knows about HTTP, the data folder or the page, so all of it works from a
notebook.
"""
