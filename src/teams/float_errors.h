// Floating-point errors of the calling thread: an operation that read or made a NaN, or a result that is too large.
// The processor keeps a flag for each until it is cleared. Minimum, maximum and comparisons set the flag for every NaN
// that they read, sums and products only for one that they make (infinity minus infinity). Errors of the members of a
// team count as errors of the thread that opened it.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <cfenv>
#endif

namespace hybridnet::teams {

#if defined(__x86_64__)

inline constexpr unsigned kFloatErrors = 1 | 8;  // bits of MXCSR: invalid operation, overflow

inline unsigned float_errors() { return _mm_getcsr() & kFloatErrors; }
inline void remember_float_errors(unsigned errors) { _mm_setcsr(_mm_getcsr() | errors); }
// Clears the errors and returns them.
inline unsigned forget_float_errors() {
  const unsigned state = _mm_getcsr();
  if ((state & kFloatErrors) != 0) _mm_setcsr(state & ~kFloatErrors);
  return state & kFloatErrors;
}

#else

inline unsigned float_errors() { return static_cast<unsigned>(std::fetestexcept(FE_INVALID | FE_OVERFLOW)); }
inline void remember_float_errors(unsigned errors) { std::feraiseexcept(static_cast<int>(errors)); }
inline unsigned forget_float_errors() {
  const unsigned errors = float_errors();
  if (errors != 0) std::feclearexcept(FE_INVALID | FE_OVERFLOW);
  return errors;
}

#endif

}  // namespace hybridnet::teams
