# tests/golden/images.py - small PNG and JPEG files as hexadecimal text, with what Pillow makes of them:
# python tests/golden/images.py > tests/golden/images.lua
import io
import struct
import zlib

from PIL import Image

SIZE = 5  # pixels of a side of the result
W, H = 24, 16
GAMMA_1 = b"gAMA", struct.pack(">I", 100000)  # linear light, which Pillow ignores


def picture(width, height):
    image = Image.new("RGB", (width, height))
    image.putdata([((x * 13) % 256, (y * 17) % 256, ((x + y) * 7) % 256) for y in range(height) for x in range(width)])
    return image


def packed(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


# Makes a PNG of 16 bits a value, most of which Pillow cannot write. colour: the format's number (0
# grey, 2 rgb, 4 grey and alpha, 6 rgba); value(x, y, c) is from 0 to 65535.
def png16(colour, channels, value, *others):
    rows = b"".join(b"\0" + b"".join(struct.pack(">H", value(x, y, c)) for x in range(W) for c in range(channels)) for y in range(H))
    parts = [chunk(b"IHDR", struct.pack(">IIBBBBB", W, H, 16, colour, 0, 0, 0)), *(chunk(*o) for o in others),
             chunk(b"IDAT", zlib.compress(rows, 9)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


# Writes the same image in the seven passes of an interlaced file.
def interlaced(image):
    steps = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
    rows = b"".join(b"\0" + b"".join(bytes(image.getpixel((x, y))) for x in range(left, W, right))
                    for left, top, right, down in steps for y in range(top, H, down))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", W, H, 8, 2, 0, 0, 1)) + \
        chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def with_chunk(data, name, text):  # behind the header, which is 33 bytes
    return data[:33] + chunk(name, text) + data[33:]


def value16(x, y, c):
    return (x * 2711 + y * 4001 * (c + 1) + 77) % 65536


# Changes Adobe's marker segment: another byte for the transform, or no segment.
def adobe(data, transform):
    at = data.index(b"\xff\xee")
    if transform is None:
        return data[:at] + data[at + 16:]
    return data[:at + 15] + bytes([transform]) + data[at + 16:]


# Pillow clips 16-bit grey at 255, so that all is white: the high byte is taken instead, as Pillow
# does for colours.
def colours(data):
    image = Image.open(io.BytesIO(data))
    if image.mode == "I;16":
        image = Image.frombytes("L", image.size, image.tobytes()[1::2])
    return image.convert("RGB")


def resized(data):
    image = colours(data)
    side = min(image.size) * 224 / 256
    left, top = (image.size[0] - side) / 2, (image.size[1] - side) / 2
    small = image.crop((round(left), round(top), round(left + side), round(top + side))).resize((SIZE, SIZE), Image.BILINEAR)
    return [v for plane in small.split() for v in plane.tobytes()]


base = picture(W, H)
veil = Image.frombytes("L", (W, H), bytes((x * 9 + y) % 256 for y in range(H) for x in range(W)))
seen_through = base.copy()
seen_through.putalpha(veil)
cmyk = packed(Image.merge("CMYK", (*base.split(), veil)), "JPEG", quality=95)
files = {
    "rgb.png": packed(base, "PNG"), "grey.png": packed(base.convert("L"), "PNG"),
    "palette.png": packed(base.quantize(8), "PNG"), "baseline.jpg": packed(base, "JPEG", quality=90),
    "progressive.jpeg": packed(base, "JPEG", quality=90, progressive=True), "grey.jpg": packed(base.convert("L"), "JPEG"),
    "interlaced.png": interlaced(base), "bits.png": packed(base.convert("1"), "PNG"), "rgba.png": packed(seen_through, "PNG"),
    "grey_alpha.png": packed(seen_through.convert("LA"), "PNG"),
    "palette_alpha.png": packed(base.quantize(4), "PNG", transparency=b"\0\x80\xff\x40"),
    "gamma.png": with_chunk(packed(base, "PNG"), *GAMMA_1),
    "gamma_palette.png": with_chunk(packed(base.quantize(4), "PNG"), *GAMMA_1),
    "grey16.png": png16(0, 1, value16), "grey16_gamma.png": png16(0, 1, value16, GAMMA_1),
    "rgb16.png": png16(2, 3, value16), "rgb16_gamma.png": png16(2, 3, value16, GAMMA_1),
    "grey_alpha16.png": png16(4, 2, value16), "rgba16.png": png16(6, 4, value16),
    "cmyk.jpg": cmyk, "ycck.jpg": adobe(cmyk, 2), "cmyk_plain.jpg": adobe(cmyk, None),
}
print("-- Made by tests/golden/images.py.\nreturn {")
for name, data in files.items():
    values = resized(data)
    print(f'  ["{name}"] = {{\n    values = {{')
    for i in range(0, len(values), 15):
        print("      " + ", ".join(map(str, values[i:i + 15])) + ",")
    print("    },")
    text = data.hex()
    print("    data = " + " ..\n      ".join(f'"{text[i:i + 90]}"' for i in range(0, len(text), 90)) + ",\n  },")
print("}")
