"""Poses of a camera in a LoCUS map, for ROS 2. `core` knows no ROS; `node` is the thin layer around it."""
