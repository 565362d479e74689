from setuptools import setup

NAME = "locus_ros"

setup(
    name=NAME,
    version="0.1.0",
    packages=[NAME],
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        (f"share/{NAME}/launch", ["launch/localizer.launch.py"]),
    ],
    install_requires=["setuptools", "locus-features"],
    zip_safe=True,
    maintainer="The LoCUS developers",
    maintainer_email="locus@example.org",
    description="Poses in a LoCUS map, from images and, if there is some, depth.",
    license="MIT",
    entry_points={"console_scripts": [f"localizer = {NAME}.node:main"]},
)
