"""tests/golden/tokenizer.py - ids of awkward texts by Hugging Face's tokenizers 0.23.

Run as `python tests/golden/tokenizer.py > tests/golden/tokenizer.lua`; tests/spec/data/tokenizer_spec.lua
reads what it prints and makes the same texts (tests/support/awkward.lua follows the same steps). The
vocabulary is that of examples/data/tokenizer. Each case is a tokenizer.json without vocabulary and
merges, and a digest of the ids for each ten texts.
"""

import json
import os
import sys
import tempfile

from tokenizers import Tokenizer

MASK = (1 << 64) - 1
TEXTS, BLOCK = 10000, 10
FOLDER = "examples/data/tokenizer"

SPACES = [9, 10, 11, 12, 13, 32, 32, 32, 0x85, 0xA0, 0x1680, 0x180E, 0x2000, 0x2003, 0x200A, 0x200B,
          0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF, 0x1C, 0x1F]
DIGITS = [0x30, 0x35, 0x39, 0x660, 0x669, 0xFF11, 0xB2, 0xBD, 0x2160, 0x1D7D8, 0x4E00, 0x966, 0x1F100]
SNIPPETS = ["'s", "'S", "'ll", "'LL", "'re", "'Ve", "'d", "'t's", "\u2019s", "'\u017f", "''m", "don't",
            "I'M", "we'd've", "'\u212a", "o'clock"]
EMOJI = ["\U0001F600", "\U0001F468\u200D\U0001F469\u200D\U0001F467", "\U0001F44D\U0001F3FD", "\U0001F1E9\U0001F1EA",
         "1\uFE0F\u20E3", "\u2764\uFE0F", "\U0001F3F4\U000E0067\U000E0062\U000E007F", "\u263A"]
WORDS = ["the", "pipeline", " of", " schedule", "micro-batch", "Hello", "WORLD", "memory", " devices", "gradient",
         "x", " a", "na\u00EFve", "stage", "2026", " 1,000,000", "camelCase", "HTTPServer", "snake_case", "=="]
ADDED = ["<|endoftext|>", "<|end", "<mask>", " <mask> ", "<mask", "[X]", "[X][X]", "<|begin_of_text|>", "a[X]b",
         "<long>", "<longer>", "<|endoftext|><|endoftext|>", "word", " word ", "\u00E9<r>", "<r> \u3000x", "<l>"]
RANGES = [(0x21, 0x7E), (0xA1, 0x24F), (0x300, 0x36F), (0x370, 0x1FFF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3),
          (0x2010, 0x2BFF), (0x1F300, 0x1FAFF), (0, 0x10FFFF)]


class Random:
    """The congruential generator of Knuth's MMIX: its upper bits, the same in Lua."""

    def __init__(self, seed):
        self.x = seed

    def below(self, n):
        self.x = (self.x * 6364136223846793005 + 1442695040888963407) & MASK
        return (self.x >> 33) % n


def any_of(r, choices):
    return choices[r.below(len(choices))]


def piece(r):
    kind = r.below(16)
    if kind < 9:
        low, high = RANGES[kind]
        code = low + r.below(high - low + 1)
        return chr(code if not 0xD800 <= code <= 0xDFFF else 0x41)
    if kind == 9:
        code = r.below(33)
        return chr(127 if code == 32 else code)
    if kind == 10:
        return chr(any_of(r, SPACES)) * (1 + r.below(4))
    if kind == 11:
        return chr(any_of(r, DIGITS)) * (1 + r.below(5))
    if kind == 15:
        return any_of(r, ["\n", "\r\n", " ", "\n\n", "  \n", "\t"]) * (1 + r.below(12))
    return any_of(r, [SNIPPETS, EMOJI, WORDS + ADDED][kind - 12])


def text_of(i):
    r = Random(i * 7919 + 17)
    return "".join(piece(r) for _ in range(r.below(24)))


# ---- cases -----------------------------------------------------------------------------------------


def added(id, content, **flags):
    token = dict(id=id, content=content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
    return {**token, **flags}


def split(pattern, behavior="Isolated", invert=False, literal=False):
    return {"type": "Split", "pattern": {"String" if literal else "Regex": pattern}, "behavior": behavior, "invert": invert}


def byte_level(prefix=False, regex=True):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def sequence(*parts):
    return {"type": "Sequence", "pretokenizers": list(parts)}


LLAMA = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
            "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+")
ROBERTA = {"type": "RobertaProcessing", "sep": ["</s>", 3001], "cls": ["<s>", 3002], "trim_offsets": True,
           "add_prefix_space": True}
TEMPLATE = {
    "type": "Sequence",
    "processors": [
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
        {"type": "TemplateProcessing",
         "single": [{"SpecialToken": {"id": "<|begin_of_text|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                    {"SpecialToken": {"id": "two", "type_id": 0}}],
         "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
         "special_tokens": {"<|begin_of_text|>": {"id": "<|begin_of_text|>", "ids": [3000], "tokens": ["<|begin_of_text|>"]},
                            "two": {"id": "two", "ids": [5, 7], "tokens": ["&", "("]}}},
    ],
}
END = added(2999, "<|endoftext|>", normalized=True)


def case(name, pre, add=(END,), post=None, pairs=False, **model):
    return dict(name=name, pairs=pairs, head={
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": list(add), "normalizer": None,
        "pre_tokenizer": pre, "post_processor": post, "decoder": byte_level(),
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
                  "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, **model,
                  "vocab": "@VOCAB@", "merges": "@MERGES@"}})


CASES = [
    case("gpt2", byte_level()),
    case("roberta", byte_level(prefix=True), post=ROBERTA,
         add=[END, added(3000, "<mask>", lstrip=True), added(3001, "</s>"), added(3002, "<s>")]),
    case("llama3", sequence(split(LLAMA), byte_level(regex=False)), post=TEMPLATE, pairs=True, ignore_merges=True,
         add=[END, added(3000, "<|begin_of_text|>")] + [added(3001 + i, f"<|reserved_{i}|>") for i in range(40)]),
    case("o200k", sequence(split(O200K), byte_level(regex=False))),
    case("deepseek", sequence(split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK), byte_level(regex=False))),
    case("bloom", sequence(split(r" ?[^(\s|[.,!?…。，、।۔،])]+"), byte_level(regex=False))),
    case("starcoder", sequence({"type": "Digits", "individual_digits": True}, byte_level())),
    case("digits", sequence({"type": "Digits", "individual_digits": False}, byte_level(prefix=True))),
    case("flags", byte_level(), add=[
        END, added(3000, "<mask>", lstrip=True, normalized=True), added(3001, "<r>", rstrip=True), added(3002, "<long"),
        added(3003, "<longer>", normalized=True), added(3004, "[X]", single_word=True), added(3005, "<l>", lstrip=True, rstrip=True),
        added(2647, "word", single_word=True, special=False, normalized=True), added(0, "!", special=False)]),
    case("contiguous", sequence(split(r"[aeiou\s]", "Contiguous"), byte_level(regex=False))),
    case("previous", sequence(split("e", "MergedWithPrevious", literal=True), split(r"\s", "MergedWithPrevious"), byte_level())),
    case("next", sequence(split(r"[\p{Lu}\d]", "MergedWithNext"), byte_level(prefix=True, regex=False))),
    case("inverse", sequence(split(r"\w+|[^\w\s]+", "Removed", invert=True), byte_level(regex=False))),
    case("empty", sequence(split(r"\p{Ll}*", "Isolated"), split(r"(?<=\p{L})\P{L}|(?<!\s)\s\s", "Removed"), byte_level(regex=False))),
]


# ---- running them ----------------------------------------------------------------------------------


def file_of(one):
    """The text of tokenizer.json: the spec puts the same together."""
    vocabulary = open(f"{FOLDER}/vocab.json", encoding="utf-8").read().strip()
    lines = open(f"{FOLDER}/merges.txt", encoding="utf-8").read().split("\n")[1:]
    pairs = [line.split(" ") for line in lines if line]
    quote = lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if one["pairs"]:
        merges = ",".join(f"[{quote(a)},{quote(b)}]" for a, b in pairs)
    else:
        merges = ",".join(quote(f"{a} {b}") for a, b in pairs)
    head = json.dumps(one["head"], ensure_ascii=False)
    return head.replace('"@VOCAB@"', vocabulary).replace('"@MERGES@"', "[" + merges + "]")


def digest(hash, ids):
    """FNV-1a over the ids, each as one unit; the number of ids ends a text."""
    for id in ids + [len(ids)]:
        hash = ((hash ^ id) * 0x100000001B3) & MASK
    return hash


def encode(tokenizer, text, **options):
    return tokenizer.encode(text, **options).ids


def load(one):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokenizer.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(file_of(one))
        return Tokenizer.from_file(path)


def digests(tokenizer, plain):
    tokenizer.encode_special_tokens = plain
    found = []
    for first in range(0, TEXTS, BLOCK):
        hash = 0xCBF29CE484222325
        for i in range(first, first + BLOCK):
            hash = digest(hash, encode(tokenizer, text_of(i), add_special_tokens=not plain))
        found.append(f"{hash >> 40:06x}")
    return "".join(found)


def main():
    print("-- Made by tests/golden/tokenizer.py; not edited by hand.\n-- luacheck: ignore 631")
    print(f"return {{ texts = {TEXTS}, block = {BLOCK}, cases = {{")
    for one in CASES:
        tokenizer = load(one)
        print("  { name = \"%s\", pairs = %s, count = %d," % (one["name"], str(one["pairs"]).lower(),
                                                           max(tokenizer.get_vocab().values()) + 1))
        print("    head = [==[%s]==]," % json.dumps(one["head"], ensure_ascii=True))
        print("    digests = \"%s\"," % digests(tokenizer, False))
        if one["name"] in ("llama3", "flags"):
            print("    plain = \"%s\"," % digests(tokenizer, True))
        print("  },")
    print("} }")


def print_new():
    """The table of runtime/io/bpe/pattern.c: what has a category here, and none in Unicode 14."""
    import unicodedata
    from tokenizers import Regex, pre_tokenizers
    assert unicodedata.unidata_version == "14.0.0", "Python 3.11 has Unicode 14"
    codes = [c for c in range(0x80, 0x110000) if not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)) == "Cn"]
    for name in "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sc Sk Sm So Zs Cf".split():
        rule = pre_tokenizers.Split(Regex(r"\p{%s}" % name), "removed")
        spans = []
        for c in (c for c in codes if not rule.pre_tokenize_str(chr(c))):
            if spans and spans[-1][1] == c - 1:
                spans[-1][1] = c
            else:
                spans.append([c, c])
        print(name, "".join("\\x{%X}" % a if a == b else "\\x{%X}-\\x{%X}" % (a, b) for a, b in spans))


if __name__ == "__main__":
    if sys.argv[1:] == ["--new"]:
        sys.exit(print_new())
    if len(sys.argv) > 2:  # CASE TEXT...: prints the ids of these texts, to find a difference
        one = next(c for c in CASES if c["name"] == sys.argv[1])
        tokenizer = load(one)
        for i in sys.argv[2:]:
            print(i, ascii(text_of(int(i))), encode(tokenizer, text_of(int(i))))
    else:
        main()
