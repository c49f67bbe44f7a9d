"""
Words of four languages
=======================

Numbers from one to twelve, as strings. ``BlendedSpectrum`` counts the substrings that two words share; words with
common parts are near to each other in its components, such as drei and drie, or quattro and cuatro.
"""

from matplotlib import pyplot as plt

from mercer import KernelPCA
from mercer.kernels import BlendedSpectrum

words = {
    "German": "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "Dutch": "een twee drie vier vijf zes zeven acht negen tien elf twaalf",
    "Italian": "uno due tre quattro cinque sei sette otto nove dieci undici dodici",
    "Spanish": "uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
}
texts = [word for group in words.values() for word in group.split()]
points = KernelPCA(2, kernel=BlendedSpectrum(3).normalized()).fit_transform(texts)

fig, ax = plt.subplots(figsize=(7, 6), layout="constrained")
for i, language in enumerate(words):
    part = slice(12 * i, 12 * i + 12)
    ax.plot(*points[part].T, "o", label=language)
# A word of two languages is written once.
for word, place in dict(zip(texts, points)).items():
    ax.annotate(word, place, xytext=(3, 3), textcoords="offset points", fontsize=7)
ax.set(xlabel="component 0", ylabel="component 1")
ax.legend()
plt.show()
