/* bindings/cli/options.c - the command line: Lua's own switches, and ours, which all have long
 * names.
 *
 * The same function reads the line twice: once to check all of it before anything runs, and once in
 * run.c for -e, -l and -W, which act in the order given. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "nearest.h"

typedef struct switch_name {
  const char *name;
  gp_switch kind;
  const char *argument; /* its argument in the help text, or NULL */
} switch_name;

static const switch_name short_names[] = {
    {"-e", GP_SWITCH_EXECUTE, "stat"},   {"-l", GP_SWITCH_LIBRARY, "mod"},
    {"-i", GP_SWITCH_INTERACTIVE, NULL}, {"-v", GP_SWITCH_BANNER, NULL},
    {"-W", GP_SWITCH_WARNINGS, NULL},    {"-E", GP_SWITCH_NO_ENVIRONMENT, NULL},
    {NULL, GP_SWITCH_BAD, NULL}};

static const switch_name long_names[] = {{"--devices", GP_SWITCH_DEVICES, "a list of devices"},
                                         {"--seed", GP_SWITCH_SEED, "an integer"},
                                         {"--dry-run", GP_SWITCH_DRY_RUN, NULL},
                                         {"--ranks", GP_SWITCH_RANKS, "a number of processes"},
                                         {"--log-ranks", GP_SWITCH_LOG_RANKS, NULL},
                                         {"--node", GP_SWITCH_NODE, "K/M, as in 0/2"},
                                         {"--master", GP_SWITCH_MASTER, "HOST:PORT"},
                                         {"--restarts", GP_SWITCH_RESTARTS, "a number"},
                                         {"--version", GP_SWITCH_VERSION, NULL},
                                         {"--list-devices", GP_SWITCH_LIST_DEVICES, NULL},
                                         {"--help", GP_SWITCH_HELP, NULL},
                                         {NULL, GP_SWITCH_BAD, NULL}};

static const char usage[] =
    "usage: " GP_PROGRAM " [options] [script [args]]\n"
    "       " GP_PROGRAM " runs|plot|watch [DIR] [options]   look at training runs (--help)\n"
    "       " GP_PROGRAM " sweep FILE... [options]   run hyper-parameter searches (--help)\n"
    "       " GP_PROGRAM " --ranks N links [--save FILE]   measure the ways between processes\n"
    "Lua's options:\n"
    "  -e stat         run the text 'stat'\n"
    "  -i              enter the interactive mode after the script\n"
    "  -l mod          require library 'mod' into the global 'mod'\n"
    "  -l g=mod        require library 'mod' into the global 'g'\n"
    "  -v              show the version\n"
    "  -E              ignore environment variables\n"
    "  -W              turn warnings on\n"
    "  --              stop reading options\n"
    "  -               run standard input as a script\n"
    "and these:\n"
    "  --devices LIST  devices that pipelines use by default, as in cpu:0,cpu:1\n"
    "  --ranks N       run the script in N processes, which share its pipelines\n"
    "  --log-ranks     show what all ranks of a job print, not only rank 0\n"
    "  --node K/M      with --ranks: these are the ranks of host K (from 0) of M hosts\n"
    "  --master HOST:PORT   with --node: where host 0 listens for the others\n"
    "  --restarts N    with --ranks: start the job again when a rank is lost, up to N times, if "
    "it\n"
    "                  can go on from a checkpoint\n"
    "  --seed N        seed of everything random: gp.seed(N) and math.randomseed(N) at the start\n"
    "  --dry-run       plan the pipelines that the script builds, and stop before the first step;\n"
    "                  with --ranks for a job of so many (and --node 0/M on M hosts), in one "
    "process\n"
    "  --version       version, Lua, libraries and what the build may use\n"
    "  --list-devices  devices that are there, and why others are not\n"
    "  --help          this text\n";

/* ---- error messages ------------------------------------------------------------------------- */

/* The long switch that was probably meant, or NULL: one or two typing errors, or a missing dash. */
static const char *suggestion(const char *text, size_t length) {
  char typed[GP_NEAREST_LENGTH];
  if (length >= sizeof typed) return NULL;
  memcpy(typed, text, length);
  typed[length] = 0;
  const char *best = NULL;
  int least = 3;
  for (const switch_name *s = long_names; s->name; s++) {
    int d = gp_edit_distance(typed, s->name);
    if (d < least) best = s->name, least = d;
  }
  return best;
}

/* Report an unknown switch, then print the usage, as lua does. */
static gp_switch refuse(const char *text, size_t length) {
  const char *meant = suggestion(text, length);
  fprintf(stderr, GP_PROGRAM ": unrecognized option '%.*s'", (int)length, text);
  if (meant) fprintf(stderr, " (did you mean '%s'?)", meant);
  fprintf(stderr, "\n%s", usage);
  return GP_SWITCH_BAD;
}

/* Report an argument where none is accepted (got), or a missing argument (NULL). */
static gp_switch refuse_argument(const switch_name *s, const char *got) {
  if (got)
    fprintf(stderr, GP_PROGRAM ": '%s' takes no argument, got '%s'\n", s->name, got);
  else
    fprintf(stderr, GP_PROGRAM ": '%s' needs an argument: %s\n", s->name, s->argument);
  fputs(usage, stderr);
  return GP_SWITCH_BAD;
}

/* ---- one switch ----------------------------------------------------------------------------- */

/* Find a switch by its exact text of `length` characters. Abbreviations are refused: a new switch
 * could break them. */
static const switch_name *find(const switch_name *names, const char *text, size_t length) {
  for (const switch_name *s = names; s->name; s++)
    if (strlen(s->name) == length && memcmp(s->name, text, length) == 0) return s;
  return NULL;
}

/* Take the argument of s: the attached one, or else the next word, which is required. */
static gp_switch take(char **argv, int *at, const switch_name *s, const char **value) {
  if (s->argument && !*value) *value = argv[(*at)++];
  if (!s->argument != !*value) return refuse_argument(s, *value);
  return s->kind;
}

/* Read --name or --name=value. */
static gp_switch next_long(char **argv, int *at, const char **value) {
  const char *text = argv[(*at)++], *equals = strchr(text, '=');
  size_t length = equals ? (size_t)(equals - text) : strlen(text);
  const switch_name *s = find(long_names, text, length);
  if (!s) return refuse(text, length);
  *value = equals ? equals + 1 : NULL;
  return take(argv, at, s, value);
}

/* Read -x, -xvalue or -x value; switches cannot be bundled, as in lua. */
static gp_switch next_short(char **argv, int *at, const char **value) {
  const char *text = argv[(*at)++];
  const switch_name *s = find(short_names, text, 2);
  if (!s || (text[2] && !s->argument)) return refuse(text, strlen(text));
  *value = text[2] ? text + 2 : NULL;
  /* `-e -i` means a forgotten argument, as in lua: a switch is not taken as one */
  if (!*value && s->argument && argv[*at] && argv[*at][0] == '-') return refuse_argument(s, NULL);
  return take(argv, at, s, value);
}

/* "-" alone is the script on standard input, "--" ends the options. */
gp_switch gp_switch_next(char **argv, int *at, const char **value) {
  const char *text = argv[*at];
  *value = NULL;
  if (!text || text[0] != '-' || !text[1]) return GP_SWITCH_END;
  if (text[1] != '-') return next_short(argv, at, value);
  if (text[2]) return next_long(argv, at, value);
  (*at)++; /* "--" */
  return GP_SWITCH_END;
}

/* ---- the whole line ------------------------------------------------------------------------- */

/* The whole text must be an integer of 64 bits. */
static bool parse_seed(const char *text, gp_options *o) {
  char *end;
  errno = 0;
  long long n = strtoll(text, &end, 10);
  if (end == text || *end || errno) {
    fprintf(stderr, GP_PROGRAM ": --seed: '%s' is not an integer\n", text);
    return false;
  }
  o->seed = n;
  o->has_seed = true;
  return true;
}

enum { MOST_RANKS = 256 }; /* processes of one machine */
enum { MOST_HOSTS = 4096 };

static bool parse_ranks(const char *text, gp_options *o) {
  char *end;
  errno = 0;
  long n = strtol(text, &end, 10);
  if (end == text || *end || errno || n < 1 || n > MOST_RANKS) {
    fprintf(stderr, GP_PROGRAM ": --ranks: '%s', expected a number of processes from 1 to %d\n",
            text, (int)MOST_RANKS);
    return false;
  }
  o->ranks = (int)n;
  return true;
}

static bool parse_restarts(const char *text, gp_options *o) {
  char *end;
  errno = 0;
  long n = strtol(text, &end, 10);
  if (end != text && !*end && !errno && n >= 0 && n <= INT_MAX) {
    o->restarts = (int)n;
    return true;
  }
  fprintf(stderr, GP_PROGRAM ": --restarts: '%s', expected a number from 0 on\n", text);
  return false;
}

/* Read K/M. */
static bool parse_node(const char *text, gp_options *o) {
  char rest;
  if (sscanf(text, "%d/%d%c", &o->node, &o->nodes, &rest) == 2 && o->node >= 0 &&
      o->node < o->nodes && o->nodes <= MOST_HOSTS)
    return true;
  fprintf(stderr, GP_PROGRAM ": --node: '%s', expected K/M, host K of M from 0, as in 0/2\n", text);
  return false;
}

static bool parse_master(const char *text, gp_options *o) {
  const char *colon = strrchr(text, ':');
  const long port = colon ? strtol(colon + 1, NULL, 10) : 0;
  o->master = text;
  if (colon && colon > text && port > 0 && port < 65536) return true;
  fprintf(stderr, GP_PROGRAM ": --master: '%s', expected HOST:PORT, as in node01:29500\n", text);
  return false;
}

/* What --ranks needs, and what needs --ranks. */
static bool check_ranks(const gp_options *o, const char *script) {
  const char *fault = NULL;
  const bool typed = o->interactive || isatty(STDIN_FILENO);
  if (o->ranks && (script ? !strcmp(script, "-") : !typed && !o->execute))
    fault = "--ranks: there is no script, expected a file that every process reads, or -i";
  else if ((o->nodes || o->master) && !o->ranks)
    fault = "--node and --master start the ranks of a host, expected --ranks N with them";
  else if (o->restarts && !o->ranks)
    fault = "--restarts is for jobs, expected --ranks N with it";
  else if (o->nodes > 1 && !o->master && !o->dry_run)
    fault = "--node: there are several hosts, expected --master HOST:PORT, which all can reach";
  else if (o->master && !o->nodes)
    fault = "--master is for several hosts, expected --node K/M with it";
  if (fault) fprintf(stderr, GP_PROGRAM ": %s\n", fault);
  return !fault;
}

/* Take one switch into o; false if it is bad. */
static bool apply(gp_options *o, gp_switch kind, const char *value) {
  switch (kind) {
  case GP_SWITCH_EXECUTE: o->execute = true; return true;
  case GP_SWITCH_INTERACTIVE: o->interactive = true; return true;
  case GP_SWITCH_BANNER: o->banner = true; return true;
  case GP_SWITCH_NO_ENVIRONMENT: o->no_environment = true; return true;
  case GP_SWITCH_SEED: return parse_seed(value, o);
  case GP_SWITCH_RANKS: return parse_ranks(value, o);
  case GP_SWITCH_LOG_RANKS: o->log_ranks = true; return true;
  case GP_SWITCH_NODE: return parse_node(value, o);
  case GP_SWITCH_MASTER: return parse_master(value, o);
  case GP_SWITCH_RESTARTS: return parse_restarts(value, o);
  case GP_SWITCH_DEVICES: o->devices = value; return true;
  case GP_SWITCH_VERSION:
  case GP_SWITCH_LIST_DEVICES:
  case GP_SWITCH_HELP: o->run = kind; return true;
  case GP_SWITCH_DRY_RUN: o->dry_run = true; return true;
  default: return kind != GP_SWITCH_BAD; /* run.c handles -l and -W later, in order */
  }
}

int gp_options_parse(char **argv, gp_options *options) {
  *options = (gp_options){.run = GP_SWITCH_END};
  int at = argv[0] ? 1 : 0;
  const char *value;
  gp_switch kind;
  while ((kind = gp_switch_next(argv, &at, &value)) != GP_SWITCH_END)
    if (!apply(options, kind, value)) return GP_EXIT_USAGE;
  options->script = at;
  if (options->run != GP_SWITCH_END) return GP_EXIT_OK; /* nothing is started */
  if (!check_ranks(options, argv[at])) return GP_EXIT_USAGE;
  if (!options->dry_run || (argv[at] && !gp_run_is_command(argv, at))) return GP_EXIT_OK;
  fputs(GP_PROGRAM ": --dry-run plans the pipelines of a script, expected one: " GP_PROGRAM
                   " --dry-run train.lua\n",
        stderr);
  return GP_EXIT_USAGE;
}

void gp_options_print_help(void) { fputs(usage, stdout); }
