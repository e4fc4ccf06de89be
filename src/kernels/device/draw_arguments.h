// The parameters of the kernels of draw.cuh, for the host and for the device.
#pragma once

#include <cstdint>

namespace hybridnet::device {

struct DrawArguments {
  void* out;
  int64_t n;
  uint64_t seed, stream;
  double first, second;            // draw: the parameters of all elements
  int64_t per_parameter;           // sample: elements for each entry of these arrays of parameters
  const double *firsts, *seconds;  // seconds: null for distributions with one parameter
  uint64_t low, range;             // draw_integers: numbers in [low, low + range); 0 means 2^64
};

// sample (parameters, draws), or (parameters, draws, categories).
struct DensityArguments {
  void* out;
  int64_t n, draws, categories;
  const void *sample, *first, *second;
  int32_t is_log;
};

// Outcomes of `count` distributions over `outcomes`, `draws` of each.
struct OutcomeArguments {
  const void* probabilities;
  void *out, *logarithms;  // logarithms: null if not wanted
  int64_t count, outcomes, draws;
  uint64_t seed, stream;
};

// Places in [0, places).
struct ChoiceArguments {
  int64_t* out;
  int64_t n, places;
  const double *probabilities, *sums;  // choose: cumulative sums of weights or null; count_outcomes: sums from there on
  int64_t experiments;
  uint64_t seed, stream;
};

// Rows of `wanted` classes without repetition.
struct ClassArguments {
  int64_t *out, *tries;
  int64_t rows, wanted;
  double log_range;
  uint64_t seed, stream;
};

}  // namespace hybridnet::device
