"""All recipes by name. Apart from `models/recipes/__init__.py`, which the recipes themselves import."""

from __future__ import annotations

from models.recipes import Recipe, dates, mini, tiny

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (mini.RECIPE, dates.RECIPE, tiny.RECIPE)}
