/* device/names.c - the names of devices: the one place that reads them.
 *
 * "cpu" and "cuda" stand for the first device of their kind. gp_device_check says whether a device
 * exists. */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "device/gpus.h"

/* Read a number without sign, spaces or overflow, and move *text behind it. */
static bool take_number(const char **text, int *number) {
  *number = 0;
  if (**text < '0' || **text > '9') return false;
  for (; **text >= '0' && **text <= '9'; (*text)++) {
    if (*number > 100000) return false;
    *number = 10 * *number + (**text - '0');
  }
  return true;
}

/* Read "/1of4"; no such part means the whole GPU. */
static bool take_part(const char **text, gp_gpu_spec *spec) {
  spec->part = 0;
  spec->parts = 1;
  if (**text != '/') return true;
  (*text)++;
  if (!take_number(text, &spec->part) || strncmp(*text, "of", 2)) return false;
  *text += 2;
  return take_number(text, &spec->parts) && spec->part < spec->parts;
}

/* This does not ask whether the device exists: gp_device_check does. */
gp_status gp_device_parse(const char *text, gp_device_name *name) {
  const char *at = text;
  gp_device_name made = {.spec = {.parts = 1}};
  bool cpu = strncmp(text, "cpu", 3) == 0, good;
  made.gpu = !cpu && strncmp(text, "cuda", 4) == 0;
  at += cpu ? 3 : made.gpu ? 4 : 0;
  good = cpu || made.gpu;
  if (good && *at == ':') at++, good = take_number(&at, &made.spec.ordinal);
  if (good && made.gpu) good = take_part(&at, &made.spec);
  if (good && !*at) return *name = made, GP_OK;
  if (!strncmp(text, "sim:", 4))
    return gp_fail(GP_EINVAL,
                   "'%s' is described and never opened, expected it in gp.plan or under --dry-run",
                   text);
  return gp_fail(GP_EINVAL,
                 "there is no device '%s', expected cpu:0, cuda:0, or a part of a GPU such as "
                 "cuda:0/1of4",
                 text);
}

gp_status gp_device_describe(const char *text, gp_device_facts *facts) {
  gp_device_name name;
  GP_TRY(gp_device_parse(text, &name));
  const gp_gpu_spec *spec = &name.spec;
  *facts = (gp_device_facts){.gpu = name.gpu};
  snprintf(facts->memory, sizeof facts->memory, "cpu");
  if (name.gpu) snprintf(facts->memory, sizeof facts->memory, "cuda:%d", spec->ordinal);
  snprintf(facts->name, sizeof facts->name, "%s:%d", name.gpu ? "cuda" : "cpu", spec->ordinal);
  if (spec->parts > 1)
    snprintf(facts->name, sizeof facts->name, "cuda:%d/%dof%d", spec->ordinal, spec->part,
             spec->parts);
  return GP_OK;
}
