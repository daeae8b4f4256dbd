/* tests/cuda/plans/cudnn_timing_test.c - GPIPE_CONVOLUTION=timed gives a convolution the engine
 * that the clock says is the fastest, and whoever asks next gets the same one.
 *
 * The library is a stand-in with three engines in each of its two lists, and the clock shows what a
 * test says. A process keeps its choices, so each case is a process of its own, which tells by its
 * exit status which engine ran. */
#include <sys/wait.h>

#include "folder.h"
#include "rest_of_plugin.h"
#include "test.h"

enum { FILE_BYTES = 4096, ENGINES_OF_LIST = 3, FAILED = 99 };

/* ---- processes ----------------------------------------------------------------------------- */

/* What a process finds: the milliseconds of each engine, and how it uses them. */
typedef struct setting {
  float time[ENGINES];
  int hidden;       /* an engine that refuses to run; 0: none */
  int hidden_later; /* one that refuses when it was chosen */
  int reads;        /* how often the clock is read, -1: any number */
  bool no_memory, capturing, twice;
} setting;

static const setting usual = {.time = {5, 4, 9, 6, 2, 7}, .reads = 6};

static gp_gpu gpu_of(int ordinal) {
  gp_gpu gpu = {.spec = {.ordinal = ordinal, .parts = 1}, .info = {.sm_count = 132}};
  snprintf(gpu.info.name, sizeof gpu.info.name, "NVIDIA (no)");
  return gpu;
}

/* Runs the convolution on a GPU; returns the engine that computed it. */
static int engine_on(int ordinal, const setting *s) {
  gp_gpu gpu = gpu_of(ordinal);
  const gp_convolution c = convolution_of(2, GP_CONVOLUTION_MAP, false);
  const char *why;
  size_t scratch;
  bool done;
  gpu.capturing = s->capturing;
  const bool prepared =
      gp_cudnn_convolution_prepare(&gpu, &c, &scratch, &why) == GP_OK && !why && scratch >= 64;
  if (s->hidden_later) stand_in.hidden = s->hidden_later;
  gpu.capturing = false;
  const bool ran = gp_cudnn_convolution_run(&gpu, &c, &done, &why) == GP_OK && done;
  gp_cudnn_close(&gpu);
  return prepared && ran && stand_in.blocks == 0 ? stand_in.ran : FAILED;
}

static void begin(const setting *s) {
  stand_in.engines = ENGINES_OF_LIST, stand_in.hidden = s->hidden;
  stand_in.no_memory = s->no_memory;
  memcpy(stand_in.time, s->time, sizeof stand_in.time);
}

/* A second GPU of the same kind, and a clock that shows other times by then. */
static int second_engine(const setting *s) {
  for (int i = 0; i < ENGINES; i++) stand_in.time[i] = (float)(ENGINES - i);
  return engine_on(1, s);
}

static pid_t start(const setting *s) {
  fflush(NULL);
  const pid_t child = fork();
  if (child != 0) return child;
  begin(s);
  const int engine = engine_on(0, s);
  const bool read = s->reads < 0 || stand_in.timed == s->reads;
  const bool same = !s->twice || second_engine(s) == engine;
  _exit(read && same ? engine : FAILED);
}

static int wait_for(pid_t child) {
  int status;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return FAILED;
  return WEXITSTATUS(status);
}

/* Returns the engine that ran in a new process. */
static int engine_of(const setting *s) { return wait_for(start(s)); }

/* ---- the file ------------------------------------------------------------------------------ */

/* Begins with an empty folder, where choices are kept. */
static void open_folder(void) {
  folder_make();
  setenv("XDG_CACHE_HOME", folder, 1);
  setenv("GPIPE_CONVOLUTION", "timed", 1);
}

static const char *file(void) { return folder_path("gpipe-lua/convolutions"); }

static void close_folder(void) {
  char inner[FOLDER_PATH + 16];
  unlink(file());
  snprintf(inner, sizeof inner, "%s/gpipe-lua", folder);
  rmdir(inner);
  folder_remove();
}

static size_t read_file(char text[FILE_BYTES]) {
  FILE *from = fopen(file(), "r");
  const size_t bytes = from ? fread(text, 1, FILE_BYTES - 1, from) : 0;
  text[bytes] = '\0';
  if (from) fclose(from);
  return bytes;
}

static void write_file(const char *text, size_t bytes) {
  FILE *to = fopen(file(), "w");
  CHECK(to && fwrite(text, 1, bytes, to) == bytes);
  if (to) fclose(to);
}

static int lines(const char *text) {
  int n = 0;
  for (; *text; text++) n += *text == '\n';
  return n;
}

/* ---- tests --------------------------------------------------------------------------------- */

TEST(without_the_switch_the_librarys_first_runs_untimed) {
  char text[FILE_BYTES];
  setting s = usual;
  open_folder();
  unsetenv("GPIPE_CONVOLUTION");
  s.reads = 0;
  CHECK(engine_of(&s) == 0 && read_file(text) == 0);
  close_folder();
}

TEST(the_fastest_is_taken_and_kept_for_the_next_process) {
  char text[FILE_BYTES], again[FILE_BYTES];
  open_folder();
  CHECK(engine_of(&usual) == 4);
  CHECK(read_file(text) > 0 && lines(text) == 1 && strstr(text, " = 4 104 "));
  CHECK(strncmp(text, "NVIDIA -no- 132 91900 2 ", 24) == 0);
  const setting other = {.time = {1, 2, 3, 4, 5, 6}, .reads = 0};
  CHECK(engine_of(&other) == 4);
  read_file(again);
  CHECK(strcmp(text, again) == 0);
  close_folder();
}

TEST(engines_that_take_the_same_time_keep_the_librarys_order) {
  open_folder();
  const setting s = {.time = {5, 4.9f, 4.88f, 5, 4.87f, 6}, .reads = 6};
  CHECK(engine_of(&s) == 0);
  close_folder();
}

TEST(an_engine_that_refuses_is_not_chosen) {
  setting s = usual;
  open_folder();
  s.hidden = 4, s.reads = 5;
  CHECK(engine_of(&s) == 1);
  close_folder();
}

/* All others follow, from the library's first on. */
TEST(a_chosen_engine_that_is_refused_later_gives_way) {
  setting s = usual;
  open_folder();
  s.hidden_later = 4;
  CHECK(engine_of(&s) == 0);
  s.reads = 0; /* now from the file */
  CHECK(engine_of(&s) == 0);
  close_folder();
}

TEST(devices_of_a_process_share_a_choice_without_a_file) {
  setting s = usual;
  open_folder();
  setenv("XDG_CACHE_HOME", "/proc/nothing", 1);
  s.twice = true;
  CHECK(engine_of(&s) == 4);
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "", 1);
  CHECK(engine_of(&s) == 4);
  close_folder();
}

/* Two processes begin at the same time, and their clocks disagree. */
TEST(processes_that_choose_at_the_same_time_agree) {
  char text[FILE_BYTES];
  for (int round = 0; round < 20; round++) {
    open_folder();
    setting first = usual, second = {.time = {9, 9, 9, 1, 9, 9}, .reads = -1};
    first.reads = -1;
    const pid_t a = start(&first), b = start(&second);
    const int chosen = wait_for(a);
    CHECK(chosen == wait_for(b) && (chosen == 4 || chosen == 3));
    read_file(text);
    CHECK(lines(text) == 1);
    close_folder();
  }
}

TEST(damaged_lines_are_made_again) {
  char text[FILE_BYTES], damaged[FILE_BYTES];
  open_folder();
  CHECK(engine_of(&usual) == 4);
  const size_t bytes = read_file(text);
  memcpy(damaged, text, bytes + 1);
  *strstr(damaged, "= 4") = '-'; /* of another kind */
  write_file(damaged, bytes);
  CHECK(engine_of(&usual) == 4);
  memcpy(damaged, text, bytes + 1);
  strstr(damaged, "= 4")[2] = '3'; /* its checksum tells */
  write_file(damaged, bytes - 1);  /* a line that was cut off */
  CHECK(engine_of(&usual) == 4);
  read_file(damaged);
  CHECK(lines(damaged) == 2 && strcmp(damaged + bytes, text) == 0);
  close_folder();
}

/* The same version, but the number means another engine there. */
TEST(an_engine_of_another_name_is_not_taken) {
  char text[FILE_BYTES], kind[FILE_BYTES], line[2 * FILE_BYTES];
  setting s = usual;
  open_folder();
  CHECK(engine_of(&s) == 4);
  read_file(text);
  snprintf(kind, sizeof kind, "%.*s", (int)(strstr(text, " = ") - text), text);
  int n = snprintf(line, sizeof line, "%s = 4 17", kind);
  uint64_t sum = 0xcbf29ce484222325u; /* FNV-1a */
  for (int i = 0; i < n; i++) sum = (sum ^ (unsigned char)line[i]) * 0x100000001b3u;
  n += snprintf(line + n, sizeof line - (size_t)n, " %016llx\n", (unsigned long long)sum);
  write_file(line, (size_t)n);
  s.reads = 0;
  CHECK(engine_of(&s) == 0);
  close_folder();
}

TEST(without_memory_or_in_a_capture_nothing_is_timed_and_nothing_kept) {
  char text[FILE_BYTES];
  setting s = usual;
  open_folder();
  s.no_memory = true, s.reads = 0;
  CHECK(engine_of(&s) == 0 && read_file(text) == 0);
  s.no_memory = false, s.capturing = true;
  CHECK(engine_of(&s) == 0 && read_file(text) == 0);
  close_folder();
}

TEST_MAIN(without_the_switch_the_librarys_first_runs_untimed,
          the_fastest_is_taken_and_kept_for_the_next_process,
          engines_that_take_the_same_time_keep_the_librarys_order,
          an_engine_that_refuses_is_not_chosen, a_chosen_engine_that_is_refused_later_gives_way,
          devices_of_a_process_share_a_choice_without_a_file,
          processes_that_choose_at_the_same_time_agree, damaged_lines_are_made_again,
          an_engine_of_another_name_is_not_taken,
          without_memory_or_in_a_capture_nothing_is_timed_and_nothing_kept)
