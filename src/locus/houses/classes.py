"""The classes of generated houses, the same in every house."""

from locus.scenes.scene import LabelClass

STUFF = ("wall", "floor", "ceiling")
THINGS = (
    "door", "window", "curtain", "radiator",
    "sofa", "armchair", "chair", "office chair", "stool", "bench", "pouf", "bed",
    "dining table", "coffee table", "side table", "desk", "nightstand", "console table",
    "wardrobe", "bookshelf", "wall shelf", "chest of drawers", "sideboard", "tv stand", "shoe rack", "coat rack",
    "kitchen counter", "kitchen cabinet", "kitchen island", "sink", "hob", "oven", "cooker hood", "fridge",
    "microwave", "kettle", "toaster", "pot", "dishes", "bottle", "fruit bowl",
    "toilet", "washbasin", "bathtub", "shower", "washing machine", "towel", "mirror",
    "television", "computer screen", "keyboard", "laptop", "speaker", "floor lamp", "table lamp", "ceiling lamp",
    "plant", "rug", "cushion", "picture", "clock", "vase", "book", "box", "basket", "bin", "candle", "toy", "piano",
)  # fmt: skip

CLASSES = tuple(
    LabelClass(number, name, "stuff" if name in STUFF else "thing") for number, name in enumerate(STUFF + THINGS, 1)
)
CLASS_ID = {label.name: label.id for label in CLASSES}
