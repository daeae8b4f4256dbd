# tests/golden/images.py - small PNG and JPEG files as hexadecimal text, with what Pillow makes of them:
# python tests/golden/images.py > tests/golden/images.lua
import io
from PIL import Image

SIZE = 5  # of the result


def picture(width, height):
    image = Image.new("RGB", (width, height))
    image.putdata([((x * 13) % 256, (y * 17) % 256, ((x + y) * 7) % 256) for y in range(height) for x in range(width)])
    return image


def packed(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def resized(data):
    image = Image.open(io.BytesIO(data)).convert("RGB")
    side = min(image.size) * 224 / 256
    left, top = (image.size[0] - side) / 2, (image.size[1] - side) / 2
    small = image.crop((round(left), round(top), round(left + side), round(top + side))).resize((SIZE, SIZE), Image.BILINEAR)
    return [v for plane in small.split() for v in plane.getdata()]


base = picture(24, 16)
files = {
    "rgb.png": packed(base, "PNG"), "grey.png": packed(base.convert("L"), "PNG"),
    "palette.png": packed(base.quantize(8), "PNG"), "baseline.jpg": packed(base, "JPEG", quality=90),
    "progressive.jpeg": packed(base, "JPEG", quality=90, progressive=True), "grey.jpg": packed(base.convert("L"), "JPEG"),
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
