// The functions of the files kernels/elementwise/*_loops.cc for pointwise.cc: each fills its rows of the table for this
// machine's SIMD target.
#pragma once

#include "kernels/elementwise/pointwise.h"

namespace hybridnet::kernels {

void fill_arithmetic(SpanLoops* table);
void fill_compare(SpanLoops* table);
void fill_integers(SpanLoops* table);
void fill_simple(SpanLoops* table);
void fill_exponential(SpanLoops* table);
void fill_trigonometric(SpanLoops* table);
void fill_special(SpanLoops* table);
void fill_activation(SpanLoops* table);

}  // namespace hybridnet::kernels
