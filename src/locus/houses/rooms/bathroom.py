"""The bathroom."""

from locus.houses.furniture import decor, kitchenware, plants, sanitary
from locus.houses.placing import Space
from locus.houses.rooms import common
from locus.houses.rooms.common import Household


def furnish(space: Space, home: Household) -> None:
    rng, style = home.rng, home.style
    x0, y0, x1, y1 = space.room.inner
    tub = max(x1 - x0, y1 - y0) > 2.3 and rng.random() < 0.65
    bath = home.make("bathtub", sanitary.bathtub) if tub else home.make("shower", sanitary.shower)
    if not space.along_wall(bath, gap=0.005) or (space.room.area > 7 and tub and rng.random() < 0.5):
        space.along_wall(home.make("shower", sanitary.shower), gap=0.005)
    basin = space.along_wall(home.make("washbasin", sanitary.washbasin), gap=0.005, prefer=0.5)
    if basin:
        common.hang_mirror(space, home, basin, (0.5, 0.8), (0.6, 0.85), 1.62)
        for _ in range(3):
            space.on_shelf(basin, kitchenware.bottle(rng, style))
    space.along_wall(home.make("toilet", sanitary.toilet), gap=0.01)
    common.dress_windows(space, home)
    if rng.random() < 0.6:
        machine = home.make("washing machine", sanitary.washing_machine)
        common.clutter(space, home, space.along_wall(machine, gap=0.03), 2)
    for _ in range(int(rng.integers(1, 4))):
        space.hang(home.make("towel", sanitary.towel), rng.uniform(1.2, 1.5))
    cx, cy = space.room.centre
    common.lay_rug(space, home, cx + rng.normal(0, 0.2), cy + rng.normal(0, 0.2), 0.8, 0.5, 0.0)
    space.along_wall(home.make("bin", decor.waste_bin))
    space.along_wall(home.make_or_again("basket", decor.basket))
    if rng.random() < 0.5:
        space.along_wall(plants.plant(rng, style, rng.uniform(0.5, 0.9)), gap=0.04)
    common.hang_ceiling_lamp(space, home, 0.1)
    common.fill_walls(space, home, 2)
