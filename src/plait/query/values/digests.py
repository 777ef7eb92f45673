"""Bytes as texts and as checksums: hex, base64, MD5, SHA and CRC."""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.query.values.forms import Unfit, Value, as_text, as_whole, by_value, is_bytes, is_text

_SHA = {
    0: hashlib.sha256,
    224: hashlib.sha224,
    256: hashlib.sha256,
    384: hashlib.sha384,
    512: hashlib.sha512,
}


def as_bytes(value: Value) -> Value:
    """A binary, or a string as UTF-8."""
    if is_text(value.type) or pt.is_null(value.type):
        return pc.cast(value, pa.binary())
    if not is_bytes(value.type):
        raise Unfit("only strings and binaries have this function; use CAST(... AS STRING)")
    return value


def hexadecimal(value: Value) -> Value:
    """The hexadecimal digits of an integer (64 bits), a string or a binary.

    >>> hexadecimal(pa.array([255, -1])).to_pylist()
    ['FF', 'FFFFFFFFFFFFFFFF']
    """
    if pt.is_integer(value.type):
        return by_value(lambda n: f"{n & (2**64 - 1):X}", pa.string(), as_whole(value))
    return by_value(lambda b: b.hex().upper(), pa.string(), as_bytes(value))


def from_hexadecimal(value: Value) -> Value:
    """Decode hexadecimal digits; null for any other text."""
    return by_value(_unhex, pa.binary(), as_text(value))


def _unhex(text: str) -> bytes | None:
    try:
        return binascii.unhexlify("0" * (len(text) % 2) + text)
    except ValueError:
        return None


def binary_digits(value: Value) -> Value:
    """The binary digits of an integer, of all 64 bits if it is negative."""
    return by_value(lambda n: f"{n & (2**64 - 1):b}", pa.string(), as_whole(value))


def md5(value: Value) -> Value:
    """The MD5 checksum in hexadecimal digits."""
    return by_value(
        lambda b: hashlib.md5(b, usedforsecurity=False).hexdigest(), pa.string(), as_bytes(value)
    )


def sha1(value: Value) -> Value:
    """The SHA-1 checksum in hexadecimal digits."""
    return by_value(
        lambda b: hashlib.sha1(b, usedforsecurity=False).hexdigest(), pa.string(), as_bytes(value)
    )


def sha2(value: Value, bits: Value) -> Value:
    """The SHA-2 checksum of 224, 256, 384 or 512 bits (0 is 256), null for other numbers."""
    return by_value(
        lambda b, n: _SHA[n](b).hexdigest() if n in _SHA else None,
        pa.string(),
        as_bytes(value),
        as_whole(bits),
    )


def crc32(value: Value) -> Value:
    """The CRC-32 checksum."""
    return by_value(zlib.crc32, pa.int64(), as_bytes(value))


def to_base64(value: Value) -> Value:
    """The bytes in base 64, without line breaks."""
    return by_value(lambda b: base64.b64encode(b).decode("ascii"), pa.string(), as_bytes(value))
