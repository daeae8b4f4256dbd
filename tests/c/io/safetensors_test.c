/* tests/c/io/safetensors_test.c - files that lie: each is refused with the fact, and no read goes
 * past its end (the sanitizer builds of this test watch that). */
#include "folder.h"
#include "test.h"

enum { MAX_FILE = 1024 };

/* A file is a header and `data` zero bytes; length 0 stands for the header's own length. */
typedef struct bad_file {
  const char *text; /* what the error text must hold */
  const char *header;
  size_t data;
  uint64_t length;
} bad_file;

#define ONE(fields)  "{\"a\":{" fields "}}"
#define I32_2x2      "\"dtype\":\"I32\",\"shape\":[2,2],\"data_offsets\":[0,16]"
#define U8_AT(range) "{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" range "}"

static const bad_file bad_files[] = {
    {"found the end, expected '{'", "", 0, 0},
    {"found the end", "{", 0, 0},
    {"not valid UTF-8", "\xff", 0, 0},
    {"not valid UTF-8", "{\"\xed\xa0\x80\":1}", 0, 0},
    {"found '[', expected '{'", "[]", 0, 0},
    {"expected nothing more", ONE(I32_2x2) "x", 16, 0},
    {"expected nothing more", ONE(I32_2x2) "{}", 16, 0},
    {"the header is said to have 4294967296 bytes", ONE(I32_2x2), 16, 4294967296u},
    {"the header is said to have 18446744073709551615 bytes", ONE(I32_2x2), 16, UINT64_MAX},
    {"the header is said to have 200 bytes", ONE(I32_2x2), 16, 200},
    {"the tensors have 16 bytes, the file has 17", ONE(I32_2x2), 17, 0},
    {"the tensors have 16 bytes, the file has 14", ONE(I32_2x2), 14, 0},
    {"the tensors have 0 bytes, the file has 1", "{}", 1, 0},
    {"has dtype 'U16'", ONE("\"dtype\":\"U16\",\"shape\":[1],\"data_offsets\":[0,2]"), 2, 0},
    {"has dtype 'f32'", ONE("\"dtype\":\"f32\",\"shape\":[1],\"data_offsets\":[0,4]"), 4, 0},
    {"more than can be addressed",
     ONE("\"dtype\":\"I32\",\"shape\":[2,9223372036854775807],\"data_offsets\":[0,16]"), 16, 0},
    {"has a dimension of 18446744073709551614",
     ONE("\"dtype\":\"I32\",\"shape\":[2,18446744073709551614],\"data_offsets\":[0,16]"), 16, 0},
    {"does not fit 64 bits",
     ONE("\"dtype\":\"I32\",\"shape\":[18446744073709551616],\"data_offsets\":[0,16]"), 16, 0},
    {"lies at data bytes 0 to 4, but i32 2x2 is 16 bytes",
     ONE("\"dtype\":\"I32\",\"shape\":[2,2],\"data_offsets\":[0,4]"), 4, 0},
    {"lies at data bytes 16 to 0", ONE("\"dtype\":\"I32\",\"shape\":[2,2],\"data_offsets\":[16,0]"),
     16, 0},
    {"begins at data byte 4, the one before ends at 0: there is a hole",
     ONE("\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[4,8]"), 8, 0},
    {"they overlap", "{\"a\":" U8_AT("[0,4]") ",\"b\":" U8_AT("[2,6]") "}", 6, 0},
    {"they overlap", "{\"a\":" U8_AT("[0,4]") ",\"b\":" U8_AT("[0,4]") "}", 4, 0},
    {"there is a hole", "{\"a\":" U8_AT("[0,4]") ",\"b\":" U8_AT("[6,10]") "}", 10, 0},
    {"tensor 'a' is given twice", "{\"a\":" U8_AT("[0,4]") ",\"a\":" U8_AT("[4,8]") "}", 8, 0},
    {"tensor 'a' is given twice", "{\"a\":" U8_AT("[0,4]") ",\"\\u0061\":" U8_AT("[4,8]") "}", 8,
     0},
    {"has shape twice", ONE("\"shape\":[2,2]," I32_2x2), 16, 0},
    {"has an unknown key 'strides'", ONE(I32_2x2 ",\"strides\":[1]"), 16, 0},
    {"has no data_offsets", ONE("\"dtype\":\"I32\",\"shape\":[2,2]"), 16, 0},
    {"has 1 data_offsets", ONE("\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1]"), 1, 0},
    {"more than 2 numbers", ONE("\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]"), 1, 0},
    {"more than 8 numbers",
     ONE("\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]"), 1, 0},
    {"found '-'", ONE("\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]"), 1, 0},
    {"without fraction", ONE("\"dtype\":\"U8\",\"shape\":[1.0],\"data_offsets\":[0,1]"), 1, 0},
    {"without fraction", ONE("\"dtype\":\"U8\",\"shape\":[1e0],\"data_offsets\":[0,1]"), 1, 0},
    {"must not start with 0", ONE("\"dtype\":\"U8\",\"shape\":[01],\"data_offsets\":[0,1]"), 1, 0},
    {"expected a whole number", ONE("\"dtype\":\"U8\",\"shape\":[1,],\"data_offsets\":[0,1]"), 1,
     0},
    {"expected a whole number", ONE("\"dtype\":\"U8\",\"shape\":[[1]],\"data_offsets\":[0,1]"), 1,
     0},
    {"expected a string", "{\"a\":" U8_AT("[0,4]") ",}", 4, 0},
    {"expected a string", "{\"__metadata__\":{\"k\":1}}", 0, 0},
    {"expected a string", "{\"__metadata__\":{\"k\":{\"deep\":{}}}}", 0, 0},
    {"__metadata__ twice", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, 0},
    {"metadata: 'k' is given twice", "{\"__metadata__\":{\"k\":\"\",\"k\":\"\"}}", 0, 0},
    {"holds \\u0000", "{\"a\\u0000\":1}", 0, 0},
    {"a surrogate without its partner", "{\"\\ud800\":1}", 0, 0},
    {"a surrogate without its partner", "{\"\\ude00\\ud800\":1}", 0, 0},
    {"expected an escape", "{\"\\x\":1}", 0, 0},
    {"hexadecimal", "{\"\\u12g4\":1}", 0, 0},
    {"for a control character", "{\"a\nb\":1}", 0, 0},
    {"found the end, expected the end of a string", "{\"abc", 0, 0},
    {"found the end", "{\"abc\\", 0, 0},
};

static size_t build(unsigned char *bytes, const bad_file *file) {
  size_t header = strlen(file->header);
  uint64_t length = file->length ? file->length : header;
  memset(bytes, 0, MAX_FILE);
  memcpy(bytes, &length, 8);
  memcpy(bytes + 8, file->header, header);
  return 8 + header + file->data;
}

TEST(malformed_files_are_refused_with_the_fact) {
  folder_make();
  unsigned char bytes[MAX_FILE];
  size_t live = gp_memory().live;
  for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
    gp_archive *archive = NULL;
    const char *path = folder_write("bad.st", bytes, build(bytes, &bad_files[i]));
    CHECK_STATUS(gp_archive_load(path, &archive), GP_EFORMAT);
    CHECK_TEXT(gp_error_text(), "bad.st: ");
    CHECK_TEXT(gp_error_text(), bad_files[i].text);
    CHECK(!archive);
  }
  CHECK(gp_memory().live == live);
  folder_remove();
}

TEST(short_files_and_bad_bools_are_refused) {
  folder_make();
  gp_archive *archive = NULL;
  for (size_t size = 0; size < 8; size++) {
    CHECK_STATUS(gp_archive_load(folder_write("s.st", "\0\0\0\0\0\0\0", size), &archive),
                 GP_EFORMAT);
    CHECK_TEXT(gp_error_text(), "a safetensors file at least 8");
  }
  unsigned char bytes[MAX_FILE];
  bad_file file = {"", ONE("\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[0,2]"), 2, 0};
  size_t size = build(bytes, &file);
  bytes[size - 1] = 7;
  CHECK_STATUS(gp_archive_load(folder_write("s.st", bytes, size), &archive), GP_EFORMAT);
  CHECK_TEXT(gp_error_text(), "tensor 'a' (bool) holds byte 7");
  CHECK(!archive);
  folder_remove();
}

/* Refuses a header of `size` bytes that `write` fills; the error text must hold `text`. */
static void refuse_large(size_t size, void (*write)(char *header), const char *text) {
  char *bytes = calloc(size + 9, 1);
  uint64_t length = size;
  gp_archive *archive = NULL;
  memset(bytes + 8, ' ', size);
  write(bytes + 8);
  memcpy(bytes, &length, 8);
  CHECK_STATUS(gp_archive_load(folder_write("large.st", bytes, size + 8), &archive), GP_EFORMAT);
  CHECK_TEXT(gp_error_text(), text);
  CHECK(!archive);
  free(bytes);
}

enum { MOST_TENSORS = 1 << 18, MOST_EMPTY = 4096, MOST_NAME = 4096, ENTRY = 64 };

static void write_entries(char *at, int count, int elements) {
  for (int i = 0; i < count; i++)
    at += sprintf(at, "%c\"%x\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%d]}",
                  i ? ',' : '{', (unsigned)i, elements, elements);
  at[0] = '}';
  at[1] = ' ';
}

static void write_tensors(char *at) { write_entries(at, MOST_TENSORS + 1, 1); }
static void write_empty(char *at) { write_entries(at, MOST_EMPTY + 1, 0); }

static void write_name(char *at) {
  memset(at, 'n', MOST_NAME + 8);
  memcpy(at, "{\"", 2);
  memcpy(at + MOST_NAME + 3, "\":{}}", 5);
}

/* A file may not cost more memory because of what it claims than because of what it holds. */
TEST(headers_over_the_limits_are_refused_with_the_limit) {
  folder_make();
  size_t live = gp_memory().live;
  refuse_large((MOST_TENSORS + 1) * (size_t)ENTRY, write_tensors, "more than 262144 tensors");
  refuse_large((MOST_EMPTY + 1) * (size_t)ENTRY, write_empty, "more than 4096 tensors without");
  refuse_large(MOST_NAME + 8, write_name, "4097 bytes, at most 4096");
  CHECK(gp_memory().live == live);
  folder_remove();
}

#define BYTES(text) text, sizeof(text) - 1 /* of a literal: its own zero is not part of the file */

TEST(files_of_other_kinds_are_named) {
  static const struct {
    const char *bytes;
    size_t size;
    const char *name;
  } files[] = {
      {BYTES("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"),
       "Git LFS"},
      {BYTES("<!DOCTYPE html><html><head>"), "HTML"},
      {BYTES("PK\3\4\0\0\0\0archive/data.pkl"), "zip"},
      {BYTES("\x80\2}q\0(X\1\0\0\0aq\1K\1u."), "pickle"},
      {BYTES("GGUF\3\0\0\0\0\0\0\0\0\0\0\0"), "GGUF"},
      {BYTES("\x93NUMPY\1\0v\0{'descr': '<f4'"), "npy"},
      {BYTES("\x89HDF\r\n\x1a\n\0\0\0\0"), "HDF5"},
      {BYTES("{\"weight\": [1, 2, 3]}"), "JSON"},
  };
  folder_make();
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    gp_archive *archive = NULL;
    const char *path = folder_write("f.st", files[i].bytes, files[i].size);
    CHECK_STATUS(gp_archive_load(path, &archive), GP_EFORMAT);
    CHECK_TEXT(gp_error_text(), files[i].name);
    CHECK(!archive);
  }
  folder_remove();
}

static const bad_file good_files[] = {
    {"minimal", ONE(I32_2x2), 16, 0},
    {"nothing", "{}", 0, 0},
    {"spaces",
     "\t\n { \"a\" : { \"shape\" : [ 2 , 2 ] ,\r\n\"dtype\":\"I32\",\"data_offsets\" :[0 ,16]} }  ",
     16, 0},
    {"empty ones share",
     "{\"a\":{\"dtype\":\"F64\",\"shape\":[0],\"data_offsets\":[4,4]},\"b\":" U8_AT(
         "[0,4]") ",\"c\":{\"dtype\":\"F64\",\"shape\":[0,7],"
                  "\"data_offsets\":[0,0]}}",
     4, 0},
    {"escapes", "{\"\\ud83d\\ude00\\/\":" U8_AT("[0,4]") "}", 4, 0},
};

TEST(unusual_files_are_taken) {
  folder_make();
  unsigned char bytes[MAX_FILE];
  for (size_t i = 0; i < sizeof good_files / sizeof *good_files; i++) {
    gp_archive *archive = NULL;
    size_t size = build(bytes, &good_files[i]);
    CHECK_STATUS(gp_archive_load(folder_write("good.st", bytes, size), &archive), GP_OK);
    if (i == 4) CHECK(!strcmp(gp_archive_name(archive, 0), "\xf0\x9f\x98\x80/"));
    gp_archive_free(archive);
  }
  folder_remove();
}

/* Whatever one flipped bit or a cut makes of a file, there is an answer and no memory leaks. */
TEST(every_flipped_bit_and_every_cut_is_survived) {
  folder_make();
  unsigned char bytes[MAX_FILE];
  bad_file file = {"", "{\"__metadata__\":{\"k\":\"\\u00e4\"},\"a\":{" I32_2x2 "}}", 16, 0};
  size_t size = build(bytes, &file), live = gp_memory().live;
  for (size_t bit = 0; bit < 8 * size; bit++) {
    bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    gp_archive *archive = NULL;
    gp_status status = gp_archive_load(folder_write("flip.st", bytes, size), &archive);
    CHECK(status == GP_OK || status == GP_EFORMAT);
    gp_archive_free(archive);
    bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
  }
  for (size_t cut = 0; cut < size; cut++) {
    gp_archive *archive = NULL;
    CHECK_STATUS(gp_archive_load(folder_write("cut.st", bytes, cut), &archive), GP_EFORMAT);
  }
  CHECK(gp_memory().live == live);
  folder_remove();
}

TEST_MAIN(headers_over_the_limits_are_refused_with_the_limit,
          malformed_files_are_refused_with_the_fact, short_files_and_bad_bools_are_refused,
          files_of_other_kinds_are_named, unusual_files_are_taken,
          every_flipped_bit_and_every_cut_is_survived)
