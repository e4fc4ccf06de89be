// Elementwise functions over contiguous spans: the single set of loops for operators, broadcasting and fused chains.
// Every function exists for float32 and float64 (SIMD width chosen once per process) and, if it makes sense, for
// integers; other dtypes are converted tile by tile: float16 and bfloat16 through float32, integers through float64.
#pragma once

#include <cstdint>

#include "hybridnet/base.h"

namespace hybridnet::kernels {

// One entry per function. To add a function: add a name here, a functor to the kernels/functors header of its kind, and
// its `add<...>` line to the kernels/elementwise/*_loops.cc file that includes it.
// clang-format off
enum class Pointwise : int {
  // arithmetic_loops.cc, two inputs
  kAdd, kSub, kMul, kDiv, kMod, kMaximum, kMinimum,
  // compare_loops.cc, two inputs; 1 or 0 in the dtype of the inputs
  kEqual, kNotEqual, kGreater, kGreaterEqual, kLesser, kLesserEqual, kLogicalAnd, kLogicalOr, kLogicalXor,
  // integer_loops.cc: integers and bool only; one input for the complement, else two
  kBitAnd, kBitOr, kBitXor, kBitNot, kLcm, kGcd,
  // simple_loops.cc, one input
  kCopy, kNegative, kAbs, kSign, kSquare, kCube, kRelu, kLogicalNot, kFloor, kCeil, kTrunc, kRint, kRound, kRoundEven, kReciprocal,
  kSqrt, kRsqrt, kScale /*factor*/, kClip /*low, high*/,
  // exponential_loops.cc, one input
  kExp, kExpm1, kLog, kLog2, kLog10, kLog1p, kTanh, kSigmoid, kSoftrelu,
  // trigonometric_loops.cc, one input
  kSin, kCos, kTan, kArcsin, kArccos, kArctan, kSinh, kCosh, kArcsinh, kArccosh, kArctanh,
  // special_loops.cc: one input; power, hypot, arctan2 and copysign two. Polygamma's order is scalars[0].
  kErf, kErfinv, kGamma, kGammaln, kPolygamma, kCbrt, kRcbrt, kPower, kHypot, kArctan2, kCopysign,
  // activation_loops.cc, one input; scalars in parentheses
  kGelu, kGeluTanh, kSilu, kLeaky /*slope*/, kElu /*slope*/, kSelu, kSoftsign, kHardSigmoid /*alpha, beta*/, kSmoothL1 /*sigma*/,
  kPrelu /*two inputs*/, kPreluSlope /*two inputs*/,
  // gradients of hot functions: (output gradient, input or output)
  kReluGrad, kSigmoidGrad, kTanhGrad, kSqrtGrad, kSquareGrad, kDivGrad, kSoftreluGrad, kGeluGrad, kGeluTanhGrad, kSiluGrad, kLeakyGrad,
  kEluGrad /*slope, scale*/, kSoftsignGrad, kHardSigmoidGrad, kSmoothL1Grad, kClipGrad,
  kCount
};
// clang-format on

// in: one pointer per input. scalars: parameters of the function (clip's bounds), null if it has none. `out` may be
// exactly one of the inputs; other overlaps are not allowed.
using SpanFn = void (*)(const void* const* in, void* out, int64_t n, const double* scalars);

enum class Repeat : int { kNone = 0, kFirst = 1, kSecond = 2 };  // the input that is a single element, used n times

struct SpanLoops {
  SpanFn fn[3][kDTypeCodes] = {};  // [Repeat][dtype]; rows 1 and 2 exist for functions of two inputs
  int arity = 0;
  float cost_ns = 0;  // per float32 element on one core, data in cache
  int scalars = 0;
  // The functor of each dtype with a loop, for devices (kernels/elementwise/device_map.h), and the header that has it.
  const char* functor[kDTypeCodes] = {};
  const char* functors = nullptr;  // "kernels/functors/simple.h"
};

const SpanLoops& loops(Pointwise function);

// The dtype that a dtype without a loop of its own is converted to.
constexpr DType dtype_through(DType dtype) { return is_floating(dtype) ? DType::kFloat32 : DType::kFloat64; }

// Runs a function over n elements of one dtype; converts if the dtype has no loop of its own. Runs on the calling
// thread, or on its current device (device/stream.h).
void apply(const SpanLoops& loops, DType dtype, const void* const* in, void* out, int64_t n,
           const double* scalars = nullptr, Repeat repeat = Repeat::kNone);

// The same split over cores.
void apply_parallel(const SpanLoops& loops, DType dtype, const void* const* in, void* out, int64_t n,
                    const double* scalars = nullptr, Repeat repeat = Repeat::kNone);

// The same with every element converted to `through`, which has a loop, and the result converted back.
void apply_through(const SpanLoops& loops, DType dtype, DType through, const void* const* in, void* out, int64_t n,
                   const double* scalars = nullptr, Repeat repeat = Repeat::kNone);

// Runs a function of two inputs over an array and a number, which is converted to dtype; `side` is the number's. On one
// core unless `parallel`.
void apply_number(const SpanLoops& loops, DType dtype, double number, Repeat side, const void* data, void* out,
                  int64_t n, bool parallel = true);

// Writes `value` as an element of dtype to memory of the host.
void store_scalar(DType dtype, double value, void* out);

}  // namespace hybridnet::kernels
