// Basic types of the whole library: shapes, dtypes, devices, reference counting. No dependencies.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace hybridnet {

inline constexpr int kMaxDims = 16;
inline constexpr int64_t kUnknownDim = -1;
inline constexpr int kUnknownNdim = -1;
// The product of the nonzero sizes of a tensor is at most kMaxElements: no machine addresses more, and sizes, strides
// and small multiples of them fit into int64_t.
inline constexpr int kMaxElementBits = 56;
inline constexpr int64_t kMaxElements = int64_t{1} << kMaxElementBits;

// Sizes of a tensor, outermost first. ndim() == -1: unknown rank; a size of -1: unknown size; 0 dims: a scalar.
class Shape {
 public:
  Shape() = default;  // unknown rank
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);  // throws ShapeError above kMaxDims
  static Shape unknown(int ndim);                 // known rank, unknown sizes; ndim -1 gives the fully unknown shape
  static Shape scalar() { return Shape::unknown(0); }

  Shape(const Shape& other) { assign(other); }
  Shape& operator=(const Shape& other) {
    assign(other);
    return *this;
  }

  int ndim() const { return ndim_; }
  int64_t operator[](int axis) const { return dims_[axis]; }
  int64_t& operator[](int axis) { return dims_[axis]; }
  const int64_t* begin() const { return dims_; }
  const int64_t* end() const { return dims_ + (ndim_ > 0 ? ndim_ : 0); }
  int64_t* data() { return dims_; }
  std::span<const int64_t> dims() const { return {dims_, static_cast<size_t>(ndim_ > 0 ? ndim_ : 0)}; }

  bool rank_known() const { return ndim_ >= 0; }
  bool known() const;  // rank and every size
  // Product of all sizes, only when known(); throws ShapeError if the nonzero sizes multiply to more than kMaxElements.
  int64_t size() const { return size(0, ndim_); }
  // Product of the sizes of axes [first, last). Inline and without division: every operator call uses it several times.
  int64_t size(int first, int last) const {
    uint64_t product = 1;
    int bits = 0;  // the product is below two to this power
    for (int axis = first; axis < last; ++axis) {
      const auto dim = static_cast<uint64_t>(dims_[axis]);
      product *= dim;
      bits += std::bit_width(dim);
    }
    return bits <= kMaxElementBits ? static_cast<int64_t>(product) : checked_size(first, last);
  }
  // True if the product of the known nonzero sizes is at most kMaxElements.
  bool is_possible() const {
    int bits = 0;
    for (int axis = 0; axis < ndim_; ++axis)
      bits += dims_[axis] < 0 ? 0 : std::bit_width(static_cast<uint64_t>(dims_[axis]));
    return bits <= kMaxElementBits || is_possible_product();
  }
  void push_back(int64_t dim);  // throws ShapeError above kMaxDims
  std::string str() const;      // "(2, 3)", "(4,)", "()", "(?, 3)", "?"

  bool operator==(const Shape& other) const {
    return ndim_ == other.ndim_ && (ndim_ <= 0 || std::memcmp(dims_, other.dims_, sizeof(int64_t) * ndim_) == 0);
  }

 private:
  void assign(const Shape& other) {
    ndim_ = other.ndim_;
    for (int i = 0; i < ndim_; ++i) dims_[i] = other.dims_[i];
  }
  int64_t checked_size(int first, int last) const;
  bool is_possible_product() const;
  int32_t ndim_ = kUnknownNdim;
  int64_t dims_[kMaxDims];
};

// Codes are those of the .params format (shared with MXNet).
enum class DType : int8_t {
  kUnknown = -1,
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kUInt8 = 3,
  kInt32 = 4,
  kInt8 = 5,
  kInt64 = 6,
  kBool = 7,
  kBFloat16 = 12,
};
inline constexpr int kDTypeCodes = 13;  // codes are < kDTypeCodes

namespace detail {
inline constexpr int8_t kDTypeSizes[kDTypeCodes] = {4, 8, 2, 1, 4, 1, 8,
                                                    1, 0, 0, 0, 0, 2};  // 0: no dtype has this code
}
// Bytes of one element; 0 for an unknown dtype.
constexpr int64_t dtype_size(DType dtype) {
  const auto code = static_cast<size_t>(static_cast<int>(dtype));
  return code < kDTypeCodes ? detail::kDTypeSizes[code] : 0;
}
const char* dtype_name(DType dtype);           // "float32"
DType dtype_from_name(std::string_view name);  // throws DTypeError naming the known ones
bool dtype_valid_code(int code);
constexpr bool is_floating(DType d) {
  return d == DType::kFloat32 || d == DType::kFloat64 || d == DType::kFloat16 || d == DType::kBFloat16;
}
constexpr bool is_half(DType d) { return d == DType::kFloat16 || d == DType::kBFloat16; }
constexpr bool is_integer(DType d) {
  return d == DType::kUInt8 || d == DType::kInt32 || d == DType::kInt8 || d == DType::kInt64;
}

// IEEE binary16 and bfloat16 as storage types; arithmetic goes through float. Conversions round to nearest even.
struct float16 {
  uint16_t bits;
  float16() = default;
  explicit float16(float value);
  operator float() const;
};
struct bfloat16 {
  uint16_t bits;
  bfloat16() = default;
  explicit bfloat16(float value);
  operator float() const;
};

// The constants shift between the exponent biases 127 and 15 and between mantissas of 23 and 10 bits.
inline float16::float16(float value) {
  uint32_t x = std::bit_cast<uint32_t>(value);
  const uint32_t sign = x >> 16 & 0x8000u;
  x &= 0x7fffffffu;
  if (x >= 0x47800000u) {  // 65536 and above, infinity, NaN (made quiet, leading payload kept)
    x = x > 0x7f800000u ? 0x7e00u | (x >> 13 & 0x3ffu) : 0x7c00u;
  } else if (x < 0x38800000u) {  // subnormal: adding 0.5 lets the FPU align and round the mantissa
    x = std::bit_cast<uint32_t>(std::bit_cast<float>(x) + 0.5f) - 0x3f000000u;
  } else {
    x = (x - 0x38000000u + 0xfffu + (x >> 13 & 1u)) >> 13;
  }
  bits = static_cast<uint16_t>(sign | x);
}
inline float16::operator float() const {
  constexpr uint32_t kExponent = 0x0f800000u;
  uint32_t x = (bits & 0x7fffu) << 13;
  const uint32_t exponent = x & kExponent;
  x += 0x38000000u;
  if (exponent == kExponent) {
    x += 0x38000000u;  // infinity and NaN
  } else if (exponent == 0) {
    x = std::bit_cast<uint32_t>(std::bit_cast<float>(x + 0x00800000u) - std::bit_cast<float>(0x38800000u));
  }
  return std::bit_cast<float>(x | (bits & 0x8000u) << 16);
}
inline bfloat16::bfloat16(float value) {
  const uint32_t x = std::bit_cast<uint32_t>(value);
  const bool nan = (x & 0x7fffffffu) > 0x7f800000u;
  bits = static_cast<uint16_t>(nan ? (x >> 16 | 0x40u) : (x + 0x7fffu + (x >> 16 & 1u)) >> 16);
}
inline bfloat16::operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

template <typename T>
struct dtype_of;
template <>
struct dtype_of<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct dtype_of<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct dtype_of<float16> {
  static constexpr DType value = DType::kFloat16;
};
template <>
struct dtype_of<bfloat16> {
  static constexpr DType value = DType::kBFloat16;
};
template <>
struct dtype_of<uint8_t> {
  static constexpr DType value = DType::kUInt8;
};
template <>
struct dtype_of<int8_t> {
  static constexpr DType value = DType::kInt8;
};
template <>
struct dtype_of<int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct dtype_of<int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct dtype_of<bool> {
  static constexpr DType value = DType::kBool;
};

// A set of dtypes, for declarations: kFloating | DTypeSet(DType::kInt32).
struct DTypeSet {
  uint32_t bits = 0;
  constexpr DTypeSet() = default;
  constexpr DTypeSet(DType d) : bits(1u << static_cast<int>(d)) {}  // NOLINT: implicit on purpose
  constexpr DTypeSet operator|(DTypeSet o) const {
    DTypeSet r;
    r.bits = bits | o.bits;
    return r;
  }
  constexpr bool has(DType d) const { return d != DType::kUnknown && (bits >> static_cast<int>(d) & 1u); }
  std::string str() const;  // "float16, float32"
};
inline constexpr DTypeSet kFloating = DTypeSet(DType::kFloat32) | DType::kFloat64 | DType::kFloat16 | DType::kBFloat16;
inline constexpr DTypeSet kIntegers = DTypeSet(DType::kUInt8) | DType::kInt8 | DType::kInt32 | DType::kInt64;
inline constexpr DTypeSet kNumeric = kFloating | kIntegers;
inline constexpr DTypeSet kAllDTypes = kNumeric | DType::kBool;

// Calls f(T{}) with the C++ type of dtype. All types of kAllDTypes are covered; the caller has checked the set.
template <typename F>
decltype(auto) dispatch_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat64:
      return f(double{});
    case DType::kFloat16:
      return f(float16{});
    case DType::kBFloat16:
      return f(bfloat16{});
    case DType::kUInt8:
      return f(uint8_t{});
    case DType::kInt8:
      return f(int8_t{});
    case DType::kInt32:
      return f(int32_t{});
    case DType::kInt64:
      return f(int64_t{});
    case DType::kBool:
      return f(bool{});
    default:
      return f(float{});
  }
}
template <typename F>
decltype(auto) dispatch_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat64:
      return f(double{});
    case DType::kFloat16:
      return f(float16{});
    case DType::kBFloat16:
      return f(bfloat16{});
    default:
      return f(float{});
  }
}
// The type in which values of T are accumulated or computed.
template <typename T>
struct accumulator {
  using type = T;
};
template <>
struct accumulator<float16> {
  using type = float;
};
template <>
struct accumulator<bfloat16> {
  using type = float;
};
template <>
struct accumulator<int8_t> {
  using type = int64_t;
};
template <>
struct accumulator<uint8_t> {
  using type = int64_t;
};
template <>
struct accumulator<int32_t> {
  using type = int64_t;
};
template <>
struct accumulator<bool> {
  using type = int64_t;
};
template <typename T>
using accumulator_t = typename accumulator<T>::type;

// kWire is no place of arrays: its worker of the engine waits for other processes (src/group).
enum class DeviceType : int8_t { kCPU = 1, kGPU = 2, kCPUPinned = 3, kCPUShared = 5, kWire = 6 };
struct Device {
  DeviceType type = DeviceType::kCPU;
  int32_t id = 0;
  bool operator==(const Device&) const = default;
  std::string str() const;  // "cpu(0)"
};

// Shape and dtype together, as inference determines them.
struct TensorSpec {
  Shape shape;
  DType dtype = DType::kUnknown;
  bool known() const { return dtype != DType::kUnknown && shape.known(); }
  bool operator==(const TensorSpec&) const = default;
  // Only when known(); throws ShapeError above kMaxElements, as shape.size() does.
  int64_t bytes() const { return shape.size() * dtype_size(dtype); }
  std::string str() const;  // "float32(2, 3)"
};

// Intrusive reference counting: T derives from RefCounted<T>, which may define `static void destroy(T*)`.
template <typename T>
class RefCounted {
 public:
  void add_ref() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) T::destroy(const_cast<T*>(static_cast<const T*>(this)));
  }
  int64_t ref_count() const { return refs_.load(std::memory_order_acquire); }
  static void destroy(T* self) { delete self; }

 private:
  mutable std::atomic<int32_t> refs_{0};
};

template <typename T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT
  explicit Ref(T* p) : p_(p) {
    if (p_) p_->add_ref();
  }
  Ref(const Ref& o) : Ref(o.p_) {}
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() {
    if (p_) p_->T::RefCounted::release();
  }  // T may have a release() of its own
  T* get() const { return p_; }
  T& operator*() const { return *p_; }
  T* operator->() const { return p_; }
  explicit operator bool() const { return p_ != nullptr; }
  bool operator==(const Ref& o) const { return p_ == o.p_; }
  bool operator==(std::nullptr_t) const { return p_ == nullptr; }
  T* detach() { return std::exchange(p_, nullptr); }  // the caller takes over the count
  static Ref adopt(T* p) {
    Ref r;
    r.p_ = p;
    return r;
  }  // takes over a count of the caller

 private:
  T* p_ = nullptr;
};
template <typename T, typename... A>
Ref<T> make_ref(A&&... args) {
  return Ref<T>(new T(std::forward<A>(args)...));
}

}  // namespace hybridnet
