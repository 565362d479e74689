"""Unpacking compressed numbers whose size is known beforehand: what would become larger is refused, not made."""

import struct
import zlib

from locus.errors import LocusError, to_install

RAW_DEFLATE = -zlib.MAX_WBITS


def inflate(data: bytes, size: int, window: int = zlib.MAX_WBITS) -> bytes:
    """What zlib packed; `RAW_DEFLATE` is the window of a stream without a header."""
    try:
        unpacked = zlib.decompressobj(window).decompress(data, size + 1)
    except zlib.error as error:
        raise LocusError(f"its compressed depth is damaged ({error})") from None
    return _of_size(unpacked, size)


def unpack_lz4(data: bytes, size: int) -> bytes:
    try:
        import lz4.block
    except ImportError:
        raise LocusError(f"its depth needs lz4: {to_install('capture')}") from None
    try:
        unpacked = lz4.block.decompress(data, uncompressed_size=size)
    except lz4.block.LZ4BlockError as error:
        raise LocusError(f"its compressed depth is damaged ({error})") from None
    return _of_size(unpacked, size)


def unpack_lzfse(data: bytes, size: int) -> bytes:
    """What Apple's LZFSE packed.

    Its library grows its output as long as data come. So the blocks' headers are asked first how much they hold; and
    since a block may hold more than it says, how many matches: an encoder makes none of less than four bytes.
    """
    try:
        import lzfse
    except ImportError:
        raise LocusError(f"its depth needs lzfse: {to_install('capture')}") from None
    said, matches = _lzfse_claims(data)
    if said != size or matches > size // 3 + 16:
        raise LocusError(f"its compressed depth or confidence holds {said} bytes where {size} are expected")
    try:
        unpacked = lzfse.decompress(data)  # ty: ignore[missing-attribute]  (compiled, untyped)
    except lzfse.error:  # ty: ignore[missing-attribute]
        raise LocusError("its compressed depth or confidence is damaged") from None
    return _of_size(unpacked, size)


def _lzfse_claims(data: bytes) -> tuple[int, int]:
    """(bytes, matches) that the headers of a stream's blocks announce."""
    said = matches = at = 0
    try:
        while (kind := data[at : at + 4]) != b"bvx$":
            said += (raw := struct.unpack_from("<I", data, at + 4)[0])
            if kind == b"bvx-":  # stored as it is
                at += 8 + raw
            elif kind == b"bvxn":  # LZVN, for short streams; its decoder keeps to the size announced
                at += 12 + struct.unpack_from("<I", data, at + 8)[0]
            elif kind == b"bvx2":
                literals, states, header = struct.unpack_from("<QQI", data, at + 8)
                matches += (literals >> 40) & 0xFFFFF
                at += max(header, 32) + ((literals >> 20) & 0xFFFFF) + ((states >> 40) & 0xFFFFF)
            else:
                raise LocusError("its depth or confidence is not compressed by LZFSE")
    except struct.error:
        raise LocusError("its compressed depth or confidence is cut short") from None
    return said, matches


def _of_size(unpacked: bytes, size: int) -> bytes:
    if len(unpacked) != size:
        raise LocusError(f"its compressed depth or confidence does not hold the {size} bytes that are expected")
    return unpacked
