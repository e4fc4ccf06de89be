// Shifts, bit fields and permutations of PTX. Amounts above the width give the results of PTX; C++
// leaves them undefined.
#pragma once

#include "ptx_numbers.h"

namespace ptx {

template <class T>
inline Bits<T> shl(Bits<T> a, uint32_t amount) {
  return amount >= unsigned(kBits<T>) ? Bits<T>(0) : Bits<T>(static_cast<uint64_t>(a) << amount);
}
template <class T>
inline Bits<T> shr(Bits<T> a, uint32_t amount) {
  if constexpr (std::is_signed_v<T>)
    return Bits<T>(value<T>(a) >> (amount >= unsigned(kBits<T>) ? kBits<T> - 1 : int(amount)));
  return amount >= unsigned(kBits<T>) ? Bits<T>(0) : Bits<T>(a >> amount);
}
template <bool kLeft, bool kClamp>
inline uint32_t shf(uint32_t low, uint32_t high, uint32_t amount) {
  const uint32_t n = kClamp ? (amount < 32 ? amount : 32) : amount & 31;
  const uint64_t both = static_cast<uint64_t>(high) << 32 | low;
  return kLeft ? uint32_t((both << n) >> 32) : uint32_t(both >> n);
}

inline uint32_t popc(uint64_t a) { return uint32_t(__builtin_popcountll(a)); }
template <class T>
inline uint32_t clz(Bits<T> a) {
  return a == 0 ? kBits<T> : uint32_t(__builtin_clzll(a)) - (64 - kBits<T>);
}
template <class T>
inline Bits<T> brev(Bits<T> a) {
  Bits<T> reversed = 0;
  for (int bit = 0; bit < kBits<T>; ++bit) reversed |= Bits<T>((a >> bit) & 1) << (kBits<T> - 1 - bit);
  return reversed;
}
// The place of the highest bit that differs from the sign, as a position or as a shift; all ones if there is none.
template <class T, bool kShiftAmount>
inline uint32_t bfind(Bits<T> a) {
  if (std::is_signed_v<T> && value<T>(a) < 0) a = ~a;
  if (a == 0) return 0xffffffffu;
  const uint32_t position = kBits<T> - 1 - clz<T>(a);
  return kShiftAmount ? kBits<T> - 1 - position : position;
}
template <class T>
inline Bits<T> bfe(Bits<T> a, uint32_t start, uint32_t length) {
  start &= 255;
  length &= 255;
  const int last = kBits<T> - 1;
  bool sign = false;
  if (std::is_signed_v<T> && length != 0)
    sign = (a >> (start + length - 1 < unsigned(last) ? start + length - 1 : unsigned(last))) & 1;
  Bits<T> field = 0;
  for (int bit = 0; bit <= last; ++bit) {
    const bool set = unsigned(bit) < length && start + bit <= unsigned(last) ? (a >> (start + bit)) & 1 : sign;
    field |= Bits<T>(set) << bit;
  }
  return field;
}
template <class T>
inline Bits<T> bfi(Bits<T> field, Bits<T> into, uint32_t start, uint32_t length) {
  start &= 255;
  length &= 255;
  if (start >= unsigned(kBits<T>) || length == 0) return into;
  const Bits<T> ones = length >= unsigned(kBits<T>) ? Bits<T>(~Bits<T>(0)) : Bits<T>((Bits<T>(1) << length) - 1);
  return Bits<T>((into & ~(ones << start)) | ((field & ones) << start));
}
// Each nibble of the selector names a byte of b:a; its high bit asks for copies of the byte's sign.
inline uint32_t prmt(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t source = static_cast<uint64_t>(b) << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t pick = selector >> (4 * i);
    uint8_t byte = uint8_t(source >> (8 * (pick & 7)));
    if (pick & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= static_cast<uint32_t>(byte) << (8 * i);
  }
  return result;
}
inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t result = 0;
  for (uint32_t row = 0; row < 8; ++row) {
    if (table >> row & 1) result |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
  }
  return result;
}
// c + the four products of bytes.
template <class A, class B>
inline uint32_t dp4a(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 4; ++i) c += uint32_t(static_cast<A>(a >> (8 * i)) * static_cast<B>(b >> (8 * i)));
  return c;
}

// Sums with the carry flag, for numbers of several words.
template <class T>
inline Bits<T> add_carry(Bits<T> a, Bits<T> b, bool carry_in, bool* carry_out) {
  const unsigned __int128 sum = static_cast<unsigned __int128>(a) + b + carry_in;
  *carry_out = sum >> kBits<T>;
  return Bits<T>(sum);
}
// The flag is the borrow here.
template <class T>
inline Bits<T> sub_borrow(Bits<T> a, Bits<T> b, bool borrow_in, bool* borrow_out) {
  *borrow_out = static_cast<unsigned __int128>(a) < static_cast<unsigned __int128>(b) + borrow_in;
  return Bits<T>(a - b - borrow_in);
}

}  // namespace ptx
