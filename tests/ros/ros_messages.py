"""Messages as ROS 2 has them, from the definitions that rosbags carries: every field there, at its default."""

from typing import Any

import numpy as np
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_HUMBLE)


def message_class(name: str) -> type:
    """A class like the one ROS generates: made without arguments or by keyword, and only of the fields it has."""
    constants, fields = STORE.fielddefs[name]
    names = tuple(field for field, _ in fields)

    def fill(self: Any, **values: Any) -> None:
        for field, kind in fields:
            setattr(self, field, values.pop(field) if field in values else _default(kind))
        assert not values, f"{name} has no {values}"

    content = {"__slots__": names, "__init__": fill, "__msgtype__": name}
    return type(name.rsplit("/", 1)[1], (), content | {constant: value for constant, _, value in constants})


def _default(kind: Any) -> Any:
    code, of = kind
    if code.name == "NAME":
        return message_class(of)()
    if code.name == "BASE":
        return {"string": "", "bool": False}.get(of[0], 0.0 if of[0].startswith("float") else 0)
    element, count = of
    return [_default(element) for _ in range(count)] if code.name == "ARRAY" else []


def as_rosbags(message: Any) -> Any:
    """The same message as rosbags' own class, which it can write."""
    _, fields = STORE.fielddefs[message.__msgtype__]
    return STORE.types[message.__msgtype__](**{name: _value(kind, getattr(message, name)) for name, kind in fields})


def _value(kind: Any, value: Any) -> Any:
    code, of = kind
    if code.name == "NAME":
        return as_rosbags(value)
    if code.name == "BASE":
        return value
    (inner, name), _ = of
    return [as_rosbags(each) for each in value] if inner.name == "NAME" else np.array(value, name[0])


def written(message: Any) -> Any:
    """A message as one that subscribes would get it: serialized, and read again."""
    name = message.__msgtype__
    return STORE.deserialize_cdr(bytes(STORE.serialize_cdr(as_rosbags(message), name)), name)


def image(stamp: int, pixels: np.ndarray, encoding: str, padding: int = 0) -> Any:
    message = message_class("sensor_msgs/msg/Image")()
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
    message.height, message.width = pixels.shape[:2]
    rows = np.ascontiguousarray(pixels).reshape(len(pixels), -1).view(np.uint8)
    rows = np.pad(rows, ((0, 0), (0, padding)))
    message.encoding, message.step, message.data = encoding, rows.shape[1], rows.ravel()
    return message


def camera_info(width: int, height: int, k: list[float], d: list[float], model: str = "plumb_bob") -> Any:
    message = message_class("sensor_msgs/msg/CameraInfo")()
    message.width, message.height, message.k, message.d, message.distortion_model = width, height, k, d, model
    return message
