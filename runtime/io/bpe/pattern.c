/* io/bpe/pattern.c - translates a pattern in one pass, left to right.
 *
 * The two libraries agree on most of the syntax and differ in single letters: \h is a hexadecimal
 * digit in one and a blank in the other, \s includes U+180E or not, ^ begins a line or the text.
 * What is known to mean the same is copied, what is known to differ is rewritten, and everything
 * else is an error that shows it: a rule that is misread would silently give other tokens.
 * Source: doc/RE of Oniguruma 6.9; pcre2pattern(3) of 10.42. */
#include "io/bpe/pattern.h"

#include <string.h>

typedef struct translator {
  const char *pattern;
  size_t at;
  gp_text *to;
  bool in_class;
} translator;

static gp_status unsupported(const translator *t, size_t at, size_t size) {
  return gp_fail(GP_EUNSUPPORTED,
                 "pattern '%s': '%.*s' at byte %zu is not supported, expected classes, \\p{..}, "
                 "\\s, \\d, \\w, groups, alternatives, look-around and repetition",
                 t->pattern, (int)size, t->pattern + at, at);
}

/* Copy n characters as they are. */
static gp_status copy(translator *t, size_t n) {
  GP_TRY(gp_text_bytes(t->to, t->pattern + t->at, n));
  t->at += n;
  return GP_OK;
}

static gp_status put(translator *t, size_t consumed, const char *text) {
  t->at += consumed;
  return gp_text_string(t->to, text);
}

/* ---- \p{..} -------------------------------------------------------------------------------- */

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Unicode 15 and 16 gave these code points their categories; PCRE2 10.42 knows Unicode 14, the
 * original knows 16. Code points do not change their category later. tests/golden/tokenizer.py
 * --new prints this table. */
static const struct {
  char category[3];
  const char *items;
} recent[] = {
    {"Lu", "\\x{1C89}\\x{A7CB}-\\x{A7CC}\\x{A7DA}\\x{A7DC}\\x{10D50}-\\x{10D65}"},
    {"Ll", "\\x{1C8A}\\x{A7CD}\\x{A7DB}\\x{10D70}-\\x{10D85}\\x{1DF25}-\\x{1DF2A}"},
    {"Lm", "\\x{10D4E}\\x{10D6F}\\x{16D40}-\\x{16D42}\\x{16D6B}-\\x{16D6C}\\x{1E030}-\\x{1E06D}"
           "\\x{1E4EB}"},
    {"Lo", "\\x{105C0}-\\x{105F3}\\x{10D4A}-\\x{10D4D}\\x{10D4F}\\x{10EC2}-\\x{10EC4}"
           "\\x{1123F}-\\x{11240}\\x{11380}-\\x{11389}\\x{1138B}\\x{1138E}\\x{11390}-\\x{113B5}"
           "\\x{113B7}\\x{113D1}\\x{113D3}\\x{11BC0}-\\x{11BE0}\\x{11F02}\\x{11F04}-\\x{11F10}"
           "\\x{11F12}-\\x{11F33}\\x{1342F}\\x{13441}-\\x{13446}\\x{13460}-\\x{143FA}"
           "\\x{16100}-\\x{1611D}\\x{16D43}-\\x{16D6A}\\x{18CFF}\\x{1B132}\\x{1B155}"
           "\\x{1E4D0}-\\x{1E4EA}\\x{1E5D0}-\\x{1E5ED}\\x{1E5F0}\\x{2B739}\\x{2EBF0}-\\x{2EE5D}"
           "\\x{31350}-\\x{323AF}"},
    {"Mn", "\\x{897}\\x{ECE}\\x{10D69}-\\x{10D6D}\\x{10EFC}-\\x{10EFF}\\x{11241}"
           "\\x{113BB}-\\x{113C0}\\x{113CE}\\x{113D0}\\x{113D2}\\x{113E1}-\\x{113E2}"
           "\\x{11F00}-\\x{11F01}\\x{11F36}-\\x{11F3A}\\x{11F40}\\x{11F42}\\x{11F5A}\\x{13440}"
           "\\x{13447}-\\x{13455}\\x{1611E}-\\x{16129}\\x{1612D}-\\x{1612F}\\x{1E08F}"
           "\\x{1E4EC}-\\x{1E4EF}\\x{1E5EE}-\\x{1E5EF}"},
    {"Mc", "\\x{CF3}\\x{113B8}-\\x{113BA}\\x{113C2}\\x{113C5}\\x{113C7}-\\x{113CA}"
           "\\x{113CC}-\\x{113CD}\\x{113CF}\\x{11F03}\\x{11F34}-\\x{11F35}\\x{11F3E}-\\x{11F3F}"
           "\\x{11F41}\\x{1612A}-\\x{1612C}"},
    {"Nd", "\\x{10D40}-\\x{10D49}\\x{116D0}-\\x{116E3}\\x{11BF0}-\\x{11BF9}\\x{11F50}-\\x{11F59}"
           "\\x{16130}-\\x{16139}\\x{16D70}-\\x{16D79}\\x{1CCF0}-\\x{1CCF9}\\x{1E4F0}-\\x{1E4F9}"
           "\\x{1E5F1}-\\x{1E5FA}"},
    {"No", "\\x{1D2C0}-\\x{1D2D3}"},
    {"Pd", "\\x{10D6E}"},
    {"Po", "\\x{1B4E}-\\x{1B4F}\\x{1B7F}\\x{113D4}-\\x{113D5}\\x{113D7}-\\x{113D8}"
           "\\x{11B00}-\\x{11B09}\\x{11BE1}\\x{11F43}-\\x{11F4F}\\x{16D6D}-\\x{16D6F}\\x{1E5FF}"},
    {"Sm", "\\x{10D8E}-\\x{10D8F}"},
    {"So", "\\x{2427}-\\x{2429}\\x{2FFC}-\\x{2FFF}\\x{31E4}-\\x{31E5}\\x{31EF}"
           "\\x{1CC00}-\\x{1CCEF}\\x{1CD00}-\\x{1CEB3}\\x{1F6DC}\\x{1F774}-\\x{1F776}"
           "\\x{1F77B}-\\x{1F77F}\\x{1F7D9}\\x{1F8B2}-\\x{1F8BB}\\x{1F8C0}-\\x{1F8C1}"
           "\\x{1FA75}-\\x{1FA77}\\x{1FA87}-\\x{1FA89}\\x{1FA8F}\\x{1FAAD}-\\x{1FAAF}"
           "\\x{1FABB}-\\x{1FABF}\\x{1FAC6}\\x{1FACE}-\\x{1FACF}\\x{1FADA}-\\x{1FADC}\\x{1FADF}"
           "\\x{1FAE8}-\\x{1FAE9}\\x{1FAF7}-\\x{1FAF8}\\x{1FBCB}-\\x{1FBEF}"},
    {"Cf", "\\x{13439}-\\x{1343F}"},
};

/* Is this a category by its two letters, or by the first of them? */
static bool is_recent(size_t i, const char *name, size_t size) {
  return name[0] == recent[i].category[0] && (size == 1 || name[1] == recent[i].category[1]);
}

/* Write a category as items of a class. */
static gp_status put_category(translator *t, const char *name, size_t size, bool inverse) {
  bool within = !t->in_class;
  for (size_t i = 0; within && i < sizeof recent / sizeof *recent; i++)
    within = !is_recent(i, name, size);
  bool open = !t->in_class && !within; /* it needs brackets around it */
  if (open) GP_TRY(gp_text_string(t->to, inverse ? "[^" : "["));
  GP_TRY(gp_text_string(t->to, inverse && !open ? "\\P{" : "\\p{"));
  GP_TRY(gp_text_bytes(t->to, name, size));
  GP_TRY(gp_text_string(t->to, "}"));
  for (size_t i = 0; (open || !inverse) && i < sizeof recent / sizeof *recent; i++)
    if (is_recent(i, name, size)) GP_TRY(gp_text_string(t->to, recent[i].items));
  return open ? gp_text_string(t->to, "]") : GP_OK;
}

/* Translate \p{..}. Names of one or two letters are categories. A longer name is one of a few
 * properties, or a script; PCRE2 would read a bare script name as the extended script. */
static gp_status put_property(translator *t) {
  static const char *const properties[] = {"White_Space", "Alphabetic", "Uppercase", "Lowercase"};
  const char *p = t->pattern + t->at;
  size_t start = 3, end;
  if (p[2] != '{') return unsupported(t, t->at, 2);
  bool inverse = p[start] == '^';
  start += inverse;
  inverse ^= p[1] == 'P';
  for (end = start; is_letter(p[end]) || p[end] == '_'; end++) {
  }
  size_t size = end - start;
  if (p[end] != '}' || !size || size > 40) return unsupported(t, t->at, end);
  t->at += end + 1;
  if (size <= 2) return put_category(t, p + start, size, inverse);
  bool property = false;
  for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
    property |= strlen(properties[i]) == size && !strncmp(properties[i], p + start, size);
  GP_TRY(gp_text_string(t->to, inverse ? "\\P{" : "\\p{"));
  if (!property) GP_TRY(gp_text_string(t->to, "sc:"));
  return gp_text_bytes(t->to, p + start, size + 1);
}

/* ---- other escapes ------------------------------------------------------------------------- */

static bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Translate \x41, \x{1F600} and \uFFFF. Two digits above 7f would mean a byte of an encoding. */
static gp_status put_code(translator *t) {
  const char *p = t->pattern + t->at;
  size_t digits = p[2] == '{' ? 3 : 2, end = digits;
  while (is_hex(p[end])) end++;
  if (p[1] == 'x' && p[2] == '{' && p[end] == '}' && end > digits) return copy(t, end + 1);
  if (p[1] == 'x' && end >= 4 && p[2] < '8') return copy(t, 4);
  if (p[1] != 'u' || digits != 2 || end < 6) return unsupported(t, t->at, 2);
  GP_TRY(gp_text_string(t->to, "\\x{"));
  GP_TRY(gp_text_bytes(t->to, p + 2, 4));
  return put(t, 6, "}");
}

/* Alphabetic has letters, and a few marks and symbols besides. */
static gp_status put_word(translator *t, bool inverse) {
  static const char *const categories[] = {"L", "M", "Nd", "Pc"};
  bool open = !t->in_class;
  if (inverse && !open) return unsupported(t, t->at, 2);
  GP_TRY(put(t, 2, !open ? "" : inverse ? "[^" : "["));
  t->in_class = true;
  GP_TRY(gp_text_string(t->to, "\\p{Alphabetic}"));
  for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
    GP_TRY(put_category(t, categories[i], strlen(categories[i]), false));
  t->in_class = !open;
  return open ? gp_text_string(t->to, "]") : GP_OK;
}

static gp_status put_escape(translator *t) {
  char c = t->pattern[t->at + 1];
  switch (c) {
  case 's': return put(t, 2, "\\p{White_Space}");
  case 'S': return put(t, 2, "\\P{White_Space}");
  case 'd':
  case 'D': t->at += 2; return put_category(t, "Nd", 2, c == 'D');
  case 'w':
  case 'W': return put_word(t, c == 'W');
  case 'p':
  case 'P': return put_property(t);
  case 'x':
  case 'u': return put_code(t);
  default: break;
  }
  if (c == '\0') return unsupported(t, t->at, 1);
  if ((is_letter(c) && !strchr("rntf", c)) || is_digit(c)) return unsupported(t, t->at, 2);
  if ((unsigned char)c >= 0x80) return put(t, 1, ""); /* an escape without effect */
  return copy(t, 2);
}

/* ---- classes, groups, intervals ------------------------------------------------------------ */

/* Begin a class within a class. It adds its items to the outer one, so it needs no brackets. A
 * negated class, the end of a range, and named classes like [:alpha:] would need more and are
 * refused. */
static gp_status open_inner(translator *t, int *depth) {
  const char *p = t->pattern + t->at;
  if (strchr("^:]", p[1]) || p[-1] == '-') return unsupported(t, t->at, p[1] ? 2 : 1);
  ++*depth;
  t->at++;
  return GP_OK;
}

static gp_status put_class(translator *t) {
  size_t start = t->at;
  int depth = 0;
  t->in_class = true;
  GP_TRY(copy(t, t->pattern[t->at + 1] == '^' ? 2 : 1));
  if (t->pattern[t->at] == ']') return unsupported(t, start, t->at + 1 - start);
  while (t->pattern[t->at] != ']' || depth) {
    const char *p = t->pattern + t->at;
    if (!*p) return unsupported(t, start, t->at - start);
    if (p[0] == '&' && p[1] == '&') return unsupported(t, t->at, 2);
    if (*p == ']') {
      depth--;
      if (*++p == '-') return unsupported(t, t->at, 2);
      t->at++;
    } else if (*p == '[') {
      GP_TRY(open_inner(t, &depth));
    } else {
      GP_TRY(*p == '\\' ? put_escape(t) : copy(t, 1));
    }
  }
  t->in_class = false;
  return copy(t, 1);
}

static gp_status put_group(translator *t) {
  static const char *const openings[] = {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?i:"};
  const char *p = t->pattern + t->at;
  for (size_t i = 0; i < sizeof openings / sizeof *openings; i++)
    if (!strncmp(p, openings[i], strlen(openings[i]))) return copy(t, strlen(openings[i]));
  return p[1] == '?' || p[1] == '*' ? unsupported(t, t->at, 3) : copy(t, 1);
}

/* Copy {n}, {n,} and {n,m}. Refuse those followed by +, which repeats the interval in Oniguruma and
 * makes it possessive in PCRE2, and {n}?, which is optional in Oniguruma only. */
static gp_status put_interval(translator *t) {
  const char *p = t->pattern + t->at;
  size_t end = 1;
  while (is_digit(p[end])) end++;
  bool comma = p[end] == ',';
  if (end == 1) return unsupported(t, t->at, 1);
  if (comma)
    for (end++; is_digit(p[end]);) end++;
  if (p[end] != '}' || p[end + 1] == '+' || (!comma && p[end + 1] == '?'))
    return unsupported(t, t->at, p[end] ? end + 2 - !p[end + 1] : end);
  return copy(t, end + 1);
}

gp_status gp_pattern_translate(const char *pattern, gp_text *to) {
  translator t = {.pattern = pattern, .to = to};
  while (pattern[t.at]) {
    switch (pattern[t.at]) {
    case '\\': GP_TRY(put_escape(&t)); break;
    case '[': GP_TRY(put_class(&t)); break;
    case '(': GP_TRY(put_group(&t)); break;
    case '{': GP_TRY(put_interval(&t)); break;
    case '^': GP_TRY(put(&t, 1, "(?:\\A|(?<=\\n)(?!\\z))")); break; /* begins a line, too */
    case '$': GP_TRY(put(&t, 1, "(?=\\n|\\z)")); break;
    default: GP_TRY(copy(&t, 1));
    }
  }
  return GP_OK;
}
