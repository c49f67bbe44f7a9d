"""A kernel on a new kind of data: recipes, compared by the amounts of the ingredients that they share."""

import json
from dataclasses import dataclass

import mercer
from mercer.extend import DataError, FeatureKernel, Objects, register
from mercer.testing import check_kernel


@register
class Recipes(Objects):
    """A row is a mapping from ingredients to grams, kept as a sorted tuple of pairs, which never changes."""

    kind = "recipes"

    @staticmethod
    def read(item):
        try:
            return tuple(sorted((str(name), float(grams)) for name, grams in dict(item).items()))
        except (TypeError, ValueError) as error:
            raise DataError(f"a recipe must map ingredients to grams, but is {item!r}.") from error

    @staticmethod
    def fingerprint(item):
        return json.dumps(item).encode()


@register
@dataclass(frozen=True, repr=False)
class SharedIngredients(FeatureKernel):
    """``k(x, z)``: the sum of the products of the amounts, in hectograms, over the ingredients that both have."""

    rows_of = Recipes

    def features(self, row):
        return {name: grams / 100 for name, grams in row}


BREAD = {"flour": 500, "water": 330, "salt": 10, "yeast": 5}
PIZZA = {"flour": 500, "water": 320, "salt": 12, "yeast": 3, "oil": 20}
CAKE = {"flour": 250, "sugar": 200, "butter": 200, "eggs": 200}
BISCUITS = {"flour": 300, "sugar": 150, "butter": 200}

if __name__ == "__main__":
    recipes, sweet = [BREAD, PIZZA, CAKE, BISCUITS], ["no", "no", "yes", "yes"]
    kernel = SharedIngredients().normalized()
    check_kernel(kernel, Recipes.of(recipes))

    model = mercer.SVC(kernel=kernel).fit(recipes, sweet)
    print("brioche", model.predict([{"flour": 500, "butter": 250, "sugar": 60, "eggs": 250}])[0])
    mercer.save(model, "recipes.mercer")
    print("read again", mercer.load("recipes.mercer").predict([BREAD])[0])
