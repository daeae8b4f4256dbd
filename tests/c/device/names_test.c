/* tests/c/device/names_test.c - which names are devices, and which are not. */
#include <string.h>

#include "gpipe/device.h"
#include "test.h"

static const struct {
  const char *given, *name, *memory;
  bool gpu;
} good[] = {
    {"cpu", "cpu:0", "cpu", false},
    {"cpu:0", "cpu:0", "cpu", false},
    {"cpu:17", "cpu:17", "cpu", false},
    {"cuda", "cuda:0", "cuda:0", true},
    {"cuda:3", "cuda:3", "cuda:3", true},
    {"cuda:1/2of4", "cuda:1/2of4", "cuda:1", true},
    {"cuda/0of2", "cuda:0/0of2", "cuda:0", true},
    {"cuda:0/0of1", "cuda:0", "cuda:0", true},
};

TEST(names_are_taken_apart) {
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    gp_device_facts facts;
    CHECK_STATUS(gp_device_describe(good[i].given, &facts), GP_OK);
    CHECK(strcmp(facts.name, good[i].name) == 0);
    CHECK(strcmp(facts.memory, good[i].memory) == 0);
    CHECK(facts.gpu == good[i].gpu);
  }
}

TEST(a_full_name_means_itself) {
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    gp_device_facts facts;
    CHECK_STATUS(gp_device_describe(good[i].name, &facts), GP_OK);
    CHECK(strcmp(facts.name, good[i].name) == 0);
  }
}

TEST(other_texts_are_no_devices) {
  static const char *const bad[] = {"",
                                    "gpu:0",
                                    "cpu:",
                                    "cpu:-1",
                                    "cpu:1x",
                                    "cuda:",
                                    "cuda:0/",
                                    "cuda:0/4of4",
                                    "cpu:0/0of2",
                                    "cuda:0/1of",
                                    "cuda:0/1of4 ",
                                    " cpu",
                                    "cpu:99999999999",
                                    "CPU:0"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    gp_device_facts facts;
    CHECK_STATUS(gp_device_describe(bad[i], &facts), GP_EINVAL);
  }
}

TEST_MAIN(names_are_taken_apart, a_full_name_means_itself, other_texts_are_no_devices)
