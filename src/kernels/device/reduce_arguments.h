// The parameters of the kernels of reduce.cuh and scan.cuh, for the host and for the device.
#pragma once

#include <cstdint>

namespace hybridnet::device {

struct ReduceArguments {
  const void* in;
  void* partial;  // accumulators of parts, if there are several for an output
  void* out;
  int64_t outer, reduced, inner;  // the layout of `in`
  int64_t parts, part_rows;       // each output is combined from `parts` runs of `part_rows` elements
  int64_t group;                  // halves of contiguous rows: this many parts are combined in order first
  int64_t divisor;                // kDivide: the number of reduced elements
  int32_t finish;                 // the value of kernels::Finish
};

struct ExtremeArguments {
  const void* in;
  void* out;
  int64_t* positions;  // positions in parts, if an output has several: (part, outer, inner)
  int64_t outer, length, inner;
  int64_t parts, part_rows;
};

struct ScanArguments {
  const void* in;
  void* out;
  void* totals;  // sums of parts: (outer, part, inner); null: sequences are summed in one piece
  int64_t outer, length, inner;
  int64_t parts, part_rows;
  int32_t from_end;
};

}  // namespace hybridnet::device
