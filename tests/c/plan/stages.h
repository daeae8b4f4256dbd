/* tests/c/plan/stages.h - the buffers of one device that trains layers of a transformer: what its
 * forward and backward passes make and free, task after task.
 *
 * A layer has twelve values (two norms, attention, a product to four times the width and back, two
 * residual sums). Each layer keeps all of them, or all but the attention's scores, or only its
 * input, and makes the rest again in its backward pass; which one is drawn. Widths are equal, or
 * drawn per layer. Bytes are multiples of 256.
 */
#ifndef GP_TESTS_STAGES_H
#define GP_TESTS_STAGES_H

#include "plan/arrange/arrange.h"

enum { STAGE_LAYERS = 16, STAGE_MICROS = 16, STAGE_SPANS = 1 << 15, STAGE_VALUES = 12 };
enum { SAVE, SELECTIVE, RECOMPUTE };

typedef enum stage_order { STAGE_1F1B, STAGE_GPIPE, STAGE_INTERLEAVED } stage_order;

typedef struct stage {
  uint64_t seed;
  int layers, chunks, micros; /* layers: per chunk */
  int policy[STAGE_LAYERS];
  size_t width[STAGE_LAYERS], heads[STAGE_LAYERS]; /* bytes: of a value, of the scores */
  int64_t now;
  /* Per layer, micro-batch and value: the span + 1 that holds it; 0: none does. */
  int32_t value[STAGE_LAYERS][STAGE_MICROS][STAGE_VALUES], input[STAGE_LAYERS][STAGE_MICROS];
  int32_t gradient[STAGE_MICROS]; /* that comes into the layer whose backward pass runs next */
  gp_lifespan *spans;
  int32_t count;
} stage;

/* What a value reads (values of its layer; -1: the layer's input), how wide it is, and what its
 * backward pass reads. */
typedef struct stage_value {
  int reads[2], kept[2], times; /* times: the width; 0: the scores */
} stage_value;

enum { IN = -1, NO = -2 };
static const stage_value stage_values[STAGE_VALUES] = {
    {{IN, NO}, {IN, NO}, 1}, /* 0 norm */
    {{0, NO}, {0, NO}, 3},   /* 1 queries, keys, values */
    {{1, NO}, {1, NO}, 0},   /* 2 scores */
    {{2, NO}, {3, NO}, 0},   /* 3 softmax */
    {{3, 1}, {3, 1}, 1},     /* 4 sum over positions */
    {{4, NO}, {4, NO}, 1},   /* 5 projection */
    {{5, IN}, {NO, NO}, 1},  /* 6 residual */
    {{6, NO}, {6, NO}, 1},   /* 7 norm */
    {{7, NO}, {7, NO}, 4},   /* 8 wide product */
    {{8, NO}, {8, NO}, 4},   /* 9 activation */
    {{9, NO}, {9, NO}, 1},   /* 10 product back */
    {{10, 6}, {NO, NO}, 1},  /* 11 residual: the output */
};

/* Knuth's MMIX generator. */
static inline uint32_t stage_draw(stage *s, uint32_t n) {
  s->seed = s->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(s->seed >> 33) % n;
}

static inline int32_t stage_open(stage *s, size_t bytes) {
  s->spans[s->count] =
      (gp_lifespan){.first = s->now, .last = s->now, .bytes = (bytes + 255) / 256 * 256};
  return ++s->count;
}

static inline size_t stage_bytes(const stage *s, int layer, int value) {
  return stage_values[value].times ? (size_t)stage_values[value].times * s->width[layer]
                                   : s->heads[layer];
}

static inline void stage_read(stage *s, int layer, int micro, int value) {
  if (value == NO) return;
  int32_t span = value == IN ? s->input[layer][micro] : s->value[layer][micro][value];
  s->spans[span - 1].last = s->now;
}

static inline void stage_make(stage *s, int layer, int micro, int value) {
  s->value[layer][micro][value] = stage_open(s, stage_bytes(s, layer, value));
  for (int i = 0; i < 2; i++) stage_read(s, layer, micro, stage_values[value].reads[i]);
  s->now++;
}

/* Is a value of the forward pass there in the backward pass? */
static inline bool stage_keeps(const stage *s, int layer, int value) {
  if (s->policy[layer] == RECOMPUTE) return false;
  return s->policy[layer] == SAVE || stage_values[value].times > 0;
}

static inline void stage_forward(stage *s, int chunk, int micro) {
  int32_t in = stage_open(s, s->width[chunk * s->layers]); /* received */
  for (int l = chunk * s->layers; l < (chunk + 1) * s->layers; l++) {
    s->input[l][micro] = in;
    for (int v = 0; v < STAGE_VALUES; v++) stage_make(s, l, micro, v);
    in = s->value[l][micro][STAGE_VALUES - 1];
  }
  s->spans[in - 1].last = s->now++; /* sent */
}

/* Make again what the forward pass did not keep, and go back through the layer. A gradient lives
 * from its first part to the backward pass of the value. */
static inline void stage_layer_back(stage *s, int layer, int micro) {
  int32_t gradient[STAGE_VALUES] = {0}, into = 0;
  gradient[STAGE_VALUES - 1] = s->gradient[micro];
  for (int v = 0; v < STAGE_VALUES - 1; v++)
    if (!stage_keeps(s, layer, v)) stage_make(s, layer, micro, v);
  for (int v = STAGE_VALUES - 1; v >= 0; v--) {
    s->spans[gradient[v] - 1].last = s->now;
    for (int i = 0; i < 2; i++) {
      stage_read(s, layer, micro, stage_values[v].kept[i]);
      int to = stage_values[v].reads[i];
      if (to == NO) continue;
      int32_t *open = to == IN ? &into : &gradient[to];
      if (!*open) *open = stage_open(s, to == IN ? s->width[layer] : stage_bytes(s, layer, to));
      s->spans[*open - 1].last = s->now;
    }
    s->now++;
  }
  s->gradient[micro] = into;
}

static inline void stage_backward(stage *s, int chunk, int micro) {
  s->gradient[micro] = stage_open(s, s->width[(chunk + 1) * s->layers - 1]);
  for (int l = (chunk + 1) * s->layers - 1; l >= chunk * s->layers; l--)
    stage_layer_back(s, l, micro);
  s->spans[s->gradient[micro] - 1].last = s->now++; /* sent */
}

static inline void stage_run_1f1b(stage *s, int ahead) {
  for (int i = 0; i < s->micros + ahead; i++) {
    if (i < s->micros) stage_forward(s, 0, i);
    if (i >= ahead) stage_backward(s, 0, i - ahead);
  }
}

static inline void stage_run_gpipe(stage *s) {
  for (int i = 0; i < s->micros; i++) stage_forward(s, 0, i);
  for (int i = s->micros - 1; i >= 0; i--) stage_backward(s, 0, i);
}

/* Megatron's interleaved 1F1B of p devices: groups of p micro-batches, chunk after chunk. */
static inline void stage_run_interleaved(stage *s, int device, int p) {
  const int total = s->micros * s->chunks;
  int ahead = (p - device - 1) * 2 + (s->chunks - 1) * p;
  if (ahead > total) ahead = total;
  for (int i = 0; i < total + ahead; i++) {
    int group = p * s->chunks, f = i % group, b = (i - ahead) % group;
    if (i < total) stage_forward(s, f / p, i / group * p + f % p);
    if (i >= ahead) stage_backward(s, s->chunks - 1 - b / p, (i - ahead) / group * p + b % p);
  }
}

static inline void stage_sample(stage *s, stage_order order, bool homo, uint64_t seed) {
  enum { P = 8 };
  gp_lifespan *spans = s->spans;
  *s = (stage){.seed = seed * UINT64_C(0x9e3779b97f4a7c15) + 1, .spans = spans};
  for (int i = 0; i < 8; i++) stage_draw(s, 2);
  s->chunks = order == STAGE_INTERLEAVED ? 2 : 1;
  s->layers = 1 + (int)stage_draw(s, 4);
  s->micros = order == STAGE_GPIPE ? 8 : STAGE_MICROS;
  size_t width = 0, heads = 0;
  for (int l = 0; l < s->layers * s->chunks; l++) {
    if (!l || !homo) {
      width = 256 * (size_t)(64 + stage_draw(s, 961));
      heads = width * (1 + stage_draw(s, 8)) / 2;
    }
    s->width[l] = width;
    s->heads[l] = heads;
    s->policy[l] = (int)stage_draw(s, 3);
  }
  int device = (int)stage_draw(s, P);
  if (order == STAGE_1F1B) stage_run_1f1b(s, P - 1 - device);
  if (order == STAGE_GPIPE) stage_run_gpipe(s);
  if (order == STAGE_INTERLEAVED) stage_run_interleaved(s, device, P);
}

#endif
