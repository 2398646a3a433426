"""CosmoFlow's samples: TFRecord files with a tf.train.Example each, perhaps compressed."""

import gzip
import struct


def fields(message):
    """The fields of a protocol buffer: number and bytes of those that have a length."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = varint()
        assert tag & 7 == 2, "only fields with a length are expected"
        length = varint()
        yield tag >> 3, message[at:at + length]
        at += length


def read_features(path):
    """The bytes of each feature of a file's one sample, by name: b"x" of int16, b"y" of float32."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    (size,) = struct.unpack_from("<Q", data)
    example = data[12:12 + size]
    found = {}
    for _, features in fields(example):
        for _, entry in fields(features):
            key, feature = (value for _, value in fields(entry))
            ((_, values),) = fields(feature)
            found[bytes(key)] = b"".join(value for _, value in fields(values))
    return found
