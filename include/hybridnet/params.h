// Parameters of operators: a plain struct per operator, described once. Parsing (from Python values, from JSON text),
// printing, defaults, ranges, docs, hashing and equality follow from the description.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "hybridnet/base.h"
#include "hybridnet/error.h"

namespace hybridnet {

using Tuple = Shape;  // a tuple parameter such as kernel=(3, 3); always of known rank; default is ()

// A slice bound tuple such as (None, 1, -1).
using OptionalInts = std::vector<std::optional<int64_t>>;

// The value of one parameter as front ends pass it.
struct AttrValue {
  using List = std::vector<AttrValue>;
  std::variant<std::monostate, bool, int64_t, double, std::string, List> value;  // monostate is None
  AttrValue() = default;
  AttrValue(bool v) : value(v) {}                       // NOLINT: implicit on purpose
  AttrValue(int v) : value(static_cast<int64_t>(v)) {}  // NOLINT
  AttrValue(int64_t v) : value(v) {}                    // NOLINT
  AttrValue(double v) : value(v) {}                     // NOLINT
  AttrValue(const char* v) : value(std::string(v)) {}   // NOLINT
  AttrValue(std::string v) : value(std::move(v)) {}     // NOLINT
  AttrValue(List v) : value(std::move(v)) {}            // NOLINT
  AttrValue(const Shape& v);                            // NOLINT
  bool is_none() const { return value.index() == 0; }
  std::string str() const;  // in the format of Python's str(): True, None, (2, 2), 0.1, relu
};

// The C++ types that a parameter may have.
enum class FieldKind : int8_t {
  kBool,
  kInt32,
  kInt64,
  kFloat,
  kDouble,
  kString,
  kEnum,
  kTuple,
  kDType,
  kOptBool,
  kOptInt32,
  kOptInt64,
  kOptFloat,
  kOptDouble,
  kOptTuple,
  kOptDType,
  kOptEnum,
  kDoubles,       // std::vector<double>: (0.1, 0.2)
  kOptionalInts,  // OptionalInts
  kOptString,
};

struct FieldInfo {
  std::string name;
  FieldKind kind;
  size_t offset = 0;
  bool required = true;  // until default_value() is called
  std::string doc;
  std::vector<std::pair<std::string, int>>
      choices;  // kEnum, kOptEnum; kString with choices restricts values (int unused)
  std::optional<double> minimum, maximum;
  AttrValue default_attr;
  bool hidden = false;  // accepted and ignored (workspace, cudnn_tune, ...), not printed
};

namespace detail {
template <typename T>
struct field_kind;
template <>
struct field_kind<bool> {
  static constexpr FieldKind value = FieldKind::kBool;
};
template <>
struct field_kind<int32_t> {
  static constexpr FieldKind value = FieldKind::kInt32;
};
template <>
struct field_kind<int64_t> {
  static constexpr FieldKind value = FieldKind::kInt64;
};
template <>
struct field_kind<float> {
  static constexpr FieldKind value = FieldKind::kFloat;
};
template <>
struct field_kind<double> {
  static constexpr FieldKind value = FieldKind::kDouble;
};
template <>
struct field_kind<std::string> {
  static constexpr FieldKind value = FieldKind::kString;
};
template <>
struct field_kind<Tuple> {
  static constexpr FieldKind value = FieldKind::kTuple;
};
template <>
struct field_kind<DType> {
  static constexpr FieldKind value = FieldKind::kDType;
};
template <>
struct field_kind<std::optional<bool>> {
  static constexpr FieldKind value = FieldKind::kOptBool;
};
template <>
struct field_kind<std::optional<int32_t>> {
  static constexpr FieldKind value = FieldKind::kOptInt32;
};
template <>
struct field_kind<std::optional<int64_t>> {
  static constexpr FieldKind value = FieldKind::kOptInt64;
};
template <>
struct field_kind<std::optional<float>> {
  static constexpr FieldKind value = FieldKind::kOptFloat;
};
template <>
struct field_kind<std::optional<double>> {
  static constexpr FieldKind value = FieldKind::kOptDouble;
};
template <>
struct field_kind<std::optional<Tuple>> {
  static constexpr FieldKind value = FieldKind::kOptTuple;
};
template <>
struct field_kind<std::optional<DType>> {
  static constexpr FieldKind value = FieldKind::kOptDType;
};
template <>
struct field_kind<std::optional<std::string>> {
  static constexpr FieldKind value = FieldKind::kOptString;
};
template <>
struct field_kind<std::vector<double>> {
  static constexpr FieldKind value = FieldKind::kDoubles;
};
template <>
struct field_kind<OptionalInts> {
  static constexpr FieldKind value = FieldKind::kOptionalInts;
};
template <typename E>
requires std::is_enum_v<E>
struct field_kind<E> {
  static_assert(sizeof(E) == sizeof(int32_t), "parameter enums are 32 bits wide (enum class X : int32_t)");
  static constexpr FieldKind value = FieldKind::kEnum;
};
template <typename E>
requires std::is_enum_v<E>
struct field_kind<std::optional<E>> {
  static_assert(sizeof(E) == sizeof(int32_t));
  static constexpr FieldKind value = FieldKind::kOptEnum;
};
}  // namespace detail

// A parameter struct on the heap, immutable once made, shared by nodes, tape entries and queued tasks.
class SchemaBase;
class Params : public RefCounted<Params> {
 public:
  virtual ~Params() = default;
  virtual void* data() = 0;
  const void* data() const { return const_cast<Params*>(this)->data(); }
  template <typename P>
  const P& as() const {
    return *static_cast<const P*>(data());
  }
};
using ParamsPtr = Ref<const Params>;

class FieldBuilder;

// The fields of a parameter struct. The virtual members are overridden for loops and branches, whose struct in memory
// differs from the attributes in files.
class SchemaBase {
 public:
  SchemaBase() = default;
  virtual ~SchemaBase();
  virtual Ref<Params> create() const = 0;  // with default values
  virtual Ref<Params> copy(const Params& from) const = 0;
  // The last step of finish(): computes members that follow from fields, and checks fields against each other.
  virtual void complete(void*) const {}

  const std::vector<FieldInfo>& fields() const { return fields_; }
  int find(std::string_view name) const;  // field index or -1
  // Sets one field; throws ParamError (op, field, expected, given). Text in AttrValue is parsed like JSON attrs.
  void set(void* params, int field, const AttrValue& value, std::string_view op) const;
  virtual AttrValue get(const void* params, int field) const;
  // To be called after all set() calls: checks that every required field was given (bit i of `given`) and that ranges
  // hold, then calls complete(). Throws ParamError.
  void finish(void* params, uint64_t given, std::string_view op) const;
  // Makes parameters from (name, text) pairs; names of the form __x__ and unknown ones are an error unless
  // `ignore_unknown`.
  virtual ParamsPtr parse(const std::vector<std::pair<std::string, std::string>>& attrs, std::string_view op,
                          bool ignore_unknown) const;
  virtual ParamsPtr parse(const std::vector<std::pair<std::string, AttrValue>>& attrs, std::string_view op) const;
  // (name, text) of every field that differs from its default or is required, in field order.
  virtual std::vector<std::pair<std::string, std::string>> print(const void* params) const;
  virtual bool equal(const void* a, const void* b) const;
  virtual uint64_t hash(const void* params) const;

 protected:
  [[gnu::cold]] FieldBuilder add_field(std::string_view name, FieldKind kind, size_t offset);
  std::vector<FieldInfo> fields_;
};

// The result of ParamSchema::field(), which describes the field further. Out of line and shared by all operators,
// because descriptions run once. (Cold, so that the compiler makes their callers small, not fast.)
class FieldBuilder {
 public:
  explicit FieldBuilder(FieldInfo& info) : info_(info) {}
  [[gnu::cold]] FieldBuilder& default_value(bool v);
  [[gnu::cold]] FieldBuilder& default_value(int v);
  [[gnu::cold]] FieldBuilder& default_value(int64_t v);
  [[gnu::cold]] FieldBuilder& default_value(double v);
  [[gnu::cold]] FieldBuilder& default_value(const char* v);
  [[gnu::cold]] FieldBuilder& default_value(AttrValue v);
  [[gnu::cold]] FieldBuilder& none_by_default();  // for optional<> members
  [[gnu::cold]] FieldBuilder& range(double low, double high);
  [[gnu::cold]] FieldBuilder& at_least(double low);
  [[gnu::cold]] FieldBuilder& doc(std::string_view text);
  [[gnu::cold]] FieldBuilder& one_of(std::initializer_list<const char*> names);  // for std::string members
  [[gnu::cold]] FieldBuilder& hidden();
  template <typename E>
  FieldBuilder& choice(std::string_view name, E v) {
    return add_choice(name, static_cast<int>(v));
  }

 private:
  [[gnu::cold]] FieldBuilder& add_choice(std::string_view name, int v);
  FieldInfo& info_;  // the schema's last field: valid until the next one is described
};

// A struct with fields that are only text forms (an expression, a program) has the members
//   void complete();                                          parses the text of fields that were set
//   std::optional<AttrValue> written(const std::string&) const;  the text of such a field; nullopt for other fields
//   bool operator==(const P&) const; uint64_t hash() const;   of the parsed meaning
template <typename P>
class ParamSchema final : public SchemaBase {
 public:
  ParamSchema() {
    if constexpr (requires { P::describe(*this); }) P::describe(*this);
  }

  // schema.field("slope", &P::slope).default_value(0.25).doc("...")
  template <typename M>
  FieldBuilder field(std::string_view name, M P::*member) {
    P probe{};
    const auto offset = reinterpret_cast<char*>(&(probe.*member)) - reinterpret_cast<char*>(&probe);
    return add_field(name, detail::field_kind<M>::value, static_cast<size_t>(offset));
  }
  // Called by finish(): schema.check([](const P& p) { if (...) throw ParamError({...}); });
  void check(std::function<void(const P&)> f) { check_ = std::move(f); }

  Ref<Params> create() const override {
    Ref<Params> box(new Box);
    for (size_t i = 0; i < fields_.size(); ++i)
      if (!fields_[i].required) set(box->data(), static_cast<int>(i), fields_[i].default_attr, "");
    return box;
  }
  Ref<Params> copy(const Params& from) const override {
    auto* box = new Box;
    box->value = from.as<P>();
    return Ref<Params>(box);
  }
  static ParamsPtr box(P value) {
    auto* b = new Box;
    b->value = std::move(value);
    return ParamsPtr(b);
  }
  void complete(void* params) const override {
    P& p = *static_cast<P*>(params);
    if constexpr (kHasText) p.complete();
    if (check_) check_(p);
  }
  AttrValue get(const void* params, int field) const override {
    if constexpr (kHasText)
      if (auto text = static_cast<const P*>(params)->written(fields_[static_cast<size_t>(field)].name)) return *text;
    return SchemaBase::get(params, field);
  }
  bool equal(const void* a, const void* b) const override {
    if constexpr (kHasText) return *static_cast<const P*>(a) == *static_cast<const P*>(b);
    return SchemaBase::equal(a, b);
  }
  uint64_t hash(const void* params) const override {
    if constexpr (kHasText) return static_cast<const P*>(params)->hash();
    return SchemaBase::hash(params);
  }

 private:
  static constexpr bool kHasText = requires(P & p) { p.complete(); };
  struct Box final : Params {
    P value{};
    void* data() override { return &value; }
  };
  std::function<void(const P&)> check_;
};

struct NoParams {};

}  // namespace hybridnet
