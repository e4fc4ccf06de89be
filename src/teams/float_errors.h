// What went wrong in arithmetic of the calling thread: an operation that met a NaN or made one, or a result that is too
// large. The processor remembers both until it is told to forget. Minimum, maximum and comparisons say so for every NaN
// that they read, sums and products only for one that they make (infinity minus infinity). What happened to the members
// of a team has happened to the thread that opened it.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <cfenv>
#endif

namespace hybridnet::teams {

#if defined(__x86_64__)

inline constexpr unsigned kFloatErrors = 1 | 8;  // of MXCSR: invalid operation, overflow

inline unsigned float_errors() { return _mm_getcsr() & kFloatErrors; }
inline void remember_float_errors(unsigned errors) { _mm_setcsr(_mm_getcsr() | errors); }
// Returns what it forgot.
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
