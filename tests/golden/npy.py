# tests/golden/npy.py - .npy files as hexadecimal text, and what NumPy reads from them:
# python tests/golden/npy.py > tests/golden/npy.lua
import io

import numpy as np

# The dtype that the elements get; those that are not listed keep theirs.
DTYPES = {"i1": "i32", "i2": "i32", "u2": "i32", "i4": "i32", "u4": "i64", "i8": "i64", "u8": "i64", "u1": "u8",
          "b1": "bool", "f2": "f16", "f4": "f32", "f8": "f64"}


def file_of(array, version=None):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version)
    return out.getvalue()


def lua(value):
    return str(value).lower() if isinstance(value, bool) else repr(value)


def values_of(kind, size):
    if kind == "b":
        return [True, False, True, True, False, True]
    if kind == "f":
        return [0.0, 1.5, -2.25, 1024.0, -0.125, 3.0]
    top = 2 ** (8 * size - 1) - 1
    return [0, 1, 2, 100, top, -top - 1] if kind == "i" else [0, 1, 2, 100, top, min(2 * top + 1, 2 ** 63 - 1)]


read = []
for name, dtype in DTYPES.items():
    for order in "<>" if name[1] != "1" else "|":
        for shape, columns in (((6,), False), ((2, 3), True)):
            array = np.array(values_of(name[0], int(name[1])), dtype=order + name).reshape(shape, order="F" if columns else "C")
            read.append((f"{order}{name} {shape}", dtype, array, None))
read += [("0-d", "f32", np.array(2.5, dtype="<f4"), None), ("empty", "f64", np.zeros((0, 3)), None),
         ("sliced", "i64", np.arange(12).reshape(3, 4)[::2, ::-1], None),
         ("turned", "f32", np.arange(24, dtype="f4").reshape(2, 3, 4).transpose(2, 0, 1), None),
         ("version 2", "f32", np.ones(2, dtype="f4"), (2, 0)), ("version 3", "f32", np.ones(2, dtype="f4"), (3, 0))]
refused = [("records", np.zeros(2, dtype=[("a", "f4"), ("b", "i4")]), "records of fields"),
           ("complex", np.zeros(2, dtype="c8"), "complex numbers"), ("texts", np.array(["ab"]), "texts"),
           ("bytes", np.array([b"ab"]), "bytes"), ("dates", np.array(["2020-01-01"], dtype="M8[D]"), "dates"),
           ("objects", np.array([1, "a"], dtype=object), "Python objects"), ("void", np.zeros(2, dtype="V4"), "records"),
           ("long double", np.zeros(2, dtype="f16"), "which no dtype here is"),
           ("beyond i64", np.array([1, 2 ** 63], dtype="u8"), "element 2 is 9223372036854775808, more than i64 holds"),
           ("nine dimensions", np.zeros((1,) * 9), "at most 8 sizes")]

def hexadecimal(data):
    text = data.hex()
    return " ..\n      ".join(f'"{text[i:i + 90]}"' for i in range(0, len(text), 90))


print("-- Made by tests/golden/npy.py.\nreturn {\n  read = {")
for name, dtype, array, version in read:
    back = np.load(io.BytesIO(file_of(array, version)))
    values = [lua(v) for v in back.ravel().tolist()]
    rows = ",\n        ".join(", ".join(values[i:i + 4]) for i in range(0, len(values), 4))
    print(f'    {{ name = "{name}", dtype = "{dtype}", shape = {{ {", ".join(map(str, back.shape))} }},')
    print(f"      values = {{ {rows} }},")
    print(f"      data = {hexadecimal(file_of(array, version))} }},")
print("  },\n  refused = {")
for name, array, why in refused:
    print(f'    {{ name = "{name}",\n      why = "{why}",\n      data = {hexadecimal(file_of(array))} }},')
print("  },\n}")
