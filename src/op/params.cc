#include "hybridnet/params.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/edit_distance.h"
#include "base/hash.h"
#include "op/attr_text.h"

namespace hybridnet {
namespace {

// Maps each FieldKind to its C++ type.
template <typename F>
decltype(auto) visit_kind(FieldKind kind, F&& f) {
  switch (kind) {
    case FieldKind::kBool:
      return f.template operator()<bool>();
    case FieldKind::kInt32:
    case FieldKind::kEnum:
      return f.template operator()<int32_t>();
    case FieldKind::kInt64:
      return f.template operator()<int64_t>();
    case FieldKind::kFloat:
      return f.template operator()<float>();
    case FieldKind::kDouble:
      return f.template operator()<double>();
    case FieldKind::kString:
      return f.template operator()<std::string>();
    case FieldKind::kTuple:
      return f.template operator()<Tuple>();
    case FieldKind::kDType:
      return f.template operator()<DType>();
    case FieldKind::kOptBool:
      return f.template operator()<std::optional<bool>>();
    case FieldKind::kOptInt32:
    case FieldKind::kOptEnum:
      return f.template operator()<std::optional<int32_t>>();
    case FieldKind::kOptInt64:
      return f.template operator()<std::optional<int64_t>>();
    case FieldKind::kOptFloat:
      return f.template operator()<std::optional<float>>();
    case FieldKind::kOptDouble:
      return f.template operator()<std::optional<double>>();
    case FieldKind::kOptTuple:
      return f.template operator()<std::optional<Tuple>>();
    case FieldKind::kOptDType:
      return f.template operator()<std::optional<DType>>();
    case FieldKind::kDoubles:
      return f.template operator()<std::vector<double>>();
    case FieldKind::kOptionalInts:
      return f.template operator()<OptionalInts>();
    case FieldKind::kOptString:
    default:
      return f.template operator()<std::optional<std::string>>();
  }
}

template <typename T>
struct is_optional : std::false_type {};
template <typename T>
struct is_optional<std::optional<T>> : std::true_type {
  using inner = T;
};

const char* kind_words(const FieldInfo& f) {
  switch (f.kind) {
    case FieldKind::kBool:
      return "a bool";
    case FieldKind::kInt32:
    case FieldKind::kInt64:
      return "an int";
    case FieldKind::kFloat:
    case FieldKind::kDouble:
      return "a float";
    case FieldKind::kString:
      return "a str";
    case FieldKind::kEnum:
      return "one of the names";
    case FieldKind::kTuple:
      return "a tuple of ints";
    case FieldKind::kDType:
      return "a dtype";
    case FieldKind::kOptBool:
      return "a bool or None";
    case FieldKind::kOptInt32:
    case FieldKind::kOptInt64:
      return "an int or None";
    case FieldKind::kOptFloat:
    case FieldKind::kOptDouble:
      return "a float or None";
    case FieldKind::kOptTuple:
      return "a tuple of ints or None";
    case FieldKind::kOptDType:
      return "a dtype or None";
    case FieldKind::kOptEnum:
      return "one of the names or None";
    case FieldKind::kDoubles:
      return "a tuple of floats";
    case FieldKind::kOptionalInts:
      return "a tuple of ints or None";
    case FieldKind::kOptString:
      return "a str or None";
  }
  return "a value";
}

std::string expected_words(const FieldInfo& f) {
  std::string text = kind_words(f);
  if (!f.choices.empty()) {
    text = "one of";
    for (size_t i = 0; i < f.choices.size(); ++i) text += (i ? ", '" : " '") + f.choices[i].first + "'";
    if (f.kind == FieldKind::kOptEnum || f.kind == FieldKind::kOptString) text += " or None";
  }
  if (f.minimum && f.maximum) {
    text += " in [" + number_text(*f.minimum) + ", " + number_text(*f.maximum) + "]";
  } else if (f.minimum) {
    text += " >= " + number_text(*f.minimum);
  } else if (f.maximum) {
    text += " <= " + number_text(*f.maximum);
  }
  return text;
}

[[noreturn]] void reject(const FieldInfo& f, const AttrValue& value, std::string_view op, std::string because = {}) {
  ErrorFields e;
  e.op = op;
  e.input = f.name;
  e.expected = expected_words(f);
  e.given = value.value.index() == 4 ? "'" + value.str() + "'" : value.str();
  e.because = std::move(because);
  throw ParamError(std::move(e));
}

// Conversions: each returns false when the value does not fit.
bool to(const AttrValue& v, bool* out) {
  if (auto* b = std::get_if<bool>(&v.value)) return *out = *b, true;
  if (auto* i = std::get_if<int64_t>(&v.value)) return *out = *i != 0, true;
  if (auto* d = std::get_if<double>(&v.value)) return *out = *d != 0, true;
  if (auto* s = std::get_if<std::string>(&v.value)) return parse_bool(*s, out);
  return false;
}
bool to(const AttrValue& v, int64_t* out) {
  if (auto* b = std::get_if<bool>(&v.value)) return *out = *b, true;
  if (auto* i = std::get_if<int64_t>(&v.value)) return *out = *i, true;
  if (auto* d = std::get_if<double>(&v.value)) {
    if (*d != std::floor(*d) || std::fabs(*d) > 9007199254740992.0) return false;
    return *out = static_cast<int64_t>(*d), true;
  }
  if (auto* s = std::get_if<std::string>(&v.value)) return parse_int(*s, out);
  return false;
}
bool to(const AttrValue& v, int32_t* out) {
  int64_t wide;
  if (!to(v, &wide) || wide < std::numeric_limits<int32_t>::min() || wide > std::numeric_limits<int32_t>::max())
    return false;
  return *out = static_cast<int32_t>(wide), true;
}
bool to(const AttrValue& v, double* out) {
  if (auto* b = std::get_if<bool>(&v.value)) return *out = *b, true;
  if (auto* i = std::get_if<int64_t>(&v.value)) return *out = static_cast<double>(*i), true;
  if (auto* d = std::get_if<double>(&v.value)) return *out = *d, true;
  if (auto* s = std::get_if<std::string>(&v.value)) return parse_double(*s, out);
  return false;
}
bool to(const AttrValue& v, float* out) {
  double wide;
  return to(v, &wide) ? (*out = static_cast<float>(wide), true) : false;
}
bool to(const AttrValue& v, std::string* out) {
  if (auto* s = std::get_if<std::string>(&v.value)) return *out = *s, true;
  if (v.is_none()) return false;
  return *out = v.str(), true;
}
bool to(const AttrValue& v, Tuple* out) {
  Tuple result = Tuple::scalar();
  if (auto* list = std::get_if<AttrValue::List>(&v.value)) {
    for (const AttrValue& item : *list) {
      int64_t i;
      if (!to(item, &i)) return false;
      result.push_back(i);
    }
  } else if (auto* s = std::get_if<std::string>(&v.value)) {
    AttrValue parsed;
    if (!parse_list(*s, &parsed)) {
      int64_t single;
      if (!parse_int(*s, &single)) return false;
      result.push_back(single);
      return *out = result, true;
    }
    return to(parsed, out);
  } else {
    int64_t single;
    if (!to(v, &single)) return false;
    result.push_back(single);
  }
  return *out = result, true;
}
bool to(const AttrValue& v, DType* out) {
  if (auto* s = std::get_if<std::string>(&v.value)) return *out = dtype_from_name(*s), true;
  int64_t code;
  if (!std::holds_alternative<int64_t>(v.value) || !to(v, &code) || code < 0 || code >= kDTypeCodes ||
      !dtype_valid_code(static_cast<int>(code))) {
    return false;
  }
  return *out = static_cast<DType>(code), true;
}
bool to(const AttrValue& v, std::vector<double>* out) {
  std::vector<double> result;
  if (auto* s = std::get_if<std::string>(&v.value)) {
    AttrValue parsed;
    if (parse_list(*s, &parsed)) return to(parsed, out);
  }
  if (auto* list = std::get_if<AttrValue::List>(&v.value)) {
    for (const AttrValue& item : *list) {
      double d;
      if (!to(item, &d)) return false;
      result.push_back(d);
    }
  } else {
    double d;
    if (!to(v, &d)) return false;
    result.push_back(d);
  }
  return *out = std::move(result), true;
}
bool to(const AttrValue& v, OptionalInts* out) {
  OptionalInts result;
  auto add = [&](const AttrValue& item) {
    if (item.is_none()) return result.push_back(std::nullopt), true;
    if (auto* s = std::get_if<std::string>(&item.value); s && is_none_text(*s))
      return result.push_back(std::nullopt), true;
    int64_t i;
    return to(item, &i) ? (result.push_back(i), true) : false;
  };
  if (auto* s = std::get_if<std::string>(&v.value)) {
    AttrValue parsed;
    if (parse_list(*s, &parsed)) return to(parsed, out);
  }
  if (auto* list = std::get_if<AttrValue::List>(&v.value)) {
    for (const AttrValue& item : *list)
      if (!add(item)) return false;
  } else if (!add(v)) {
    return false;
  }
  return *out = std::move(result), true;
}

bool choose(const FieldInfo& f, const AttrValue& v, int32_t* out) {
  auto* s = std::get_if<std::string>(&v.value);
  std::string text = s ? *s : v.str();
  for (const auto& [name, code] : f.choices)
    if (name == text) return *out = code, true;
  return false;
}

AttrValue from(bool v) { return v; }
AttrValue from(int32_t v) { return static_cast<int64_t>(v); }
AttrValue from(int64_t v) { return v; }
AttrValue from(float v) { return shortest_double(v); }
AttrValue from(double v) { return v; }
AttrValue from(const std::string& v) { return v; }
AttrValue from(const Tuple& v) { return AttrValue(v); }
AttrValue from(DType v) { return v == DType::kUnknown ? AttrValue() : AttrValue(dtype_name(v)); }
AttrValue from(const std::vector<double>& v) {
  AttrValue::List list(v.begin(), v.end());
  return list;
}
AttrValue from(const OptionalInts& v) {
  AttrValue::List list;
  for (const auto& i : v) list.push_back(i ? AttrValue(*i) : AttrValue());
  return list;
}
template <typename T>
AttrValue from(const std::optional<T>& v) {
  return v ? from(*v) : AttrValue();
}

std::string choice_name(const FieldInfo& f, int32_t code) {
  for (const auto& [name, c] : f.choices)
    if (c == code) return name;
  return std::to_string(code);
}

// Parameters are equal if they give equal results: so 0.0 and -0.0 differ, and a NaN equals itself.
template <typename T>
bool same(const T& a, const T& b) {
  return a == b;
}
bool same(const double& a, const double& b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }
bool same(const float& a, const float& b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }
bool same(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) { return same(x, y); });
}
template <typename T>
bool same(const std::optional<T>& a, const std::optional<T>& b) {
  return a && b ? same(*a, *b) : a.has_value() == b.has_value();
}

template <typename T>
uint64_t hash_one(const T& v) {
  if constexpr (std::is_enum_v<T>)
    return static_cast<uint64_t>(static_cast<int64_t>(v));
  else
    return std::hash<T>()(v);
}
uint64_t hash_one(const Tuple& v) {
  uint64_t h = static_cast<uint64_t>(v.ndim());
  for (int64_t d : v) h = mix_hash(h, static_cast<uint64_t>(d));
  return h;
}
uint64_t hash_one(const std::vector<double>& v) {
  uint64_t h = v.size();
  for (double d : v) h = mix_hash(h, std::hash<double>()(d));
  return h;
}
uint64_t hash_one(const OptionalInts& v) {
  uint64_t h = v.size();
  for (const auto& d : v) h = mix_hash(h, d ? static_cast<uint64_t>(*d) : 0x5bd1e995u);
  return h;
}
template <typename T>
uint64_t hash_one(const std::optional<T>& v) {
  return v ? mix_hash(1, hash_one(*v)) : 7;
}

}  // namespace

AttrValue::AttrValue(const Shape& v) {
  List list;
  for (int64_t d : v) list.emplace_back(d);
  value = std::move(list);
}

std::string AttrValue::str() const {
  switch (value.index()) {
    case 0:
      return "None";
    case 1:
      return std::get<bool>(value) ? "True" : "False";
    case 2:
      return std::to_string(std::get<int64_t>(value));
    case 3:
      return number_text(std::get<double>(value), true);
    case 4:
      return std::get<std::string>(value);
    default:
      break;
  }
  const List& list = std::get<List>(value);
  std::string text = "(";
  for (size_t i = 0; i < list.size(); ++i) text += (i ? ", " : "") + list[i].str();
  return text + (list.size() == 1 ? ",)" : ")");
}

int SchemaBase::find(std::string_view name) const {
  for (size_t i = 0; i < fields_.size(); ++i)
    if (fields_[i].name == name) return static_cast<int>(i);
  return -1;
}

void SchemaBase::set(void* params, int field, const AttrValue& value, std::string_view op) const {
  const FieldInfo& f = fields_[field];
  char* at = static_cast<char*>(params) + f.offset;
  auto* text = std::get_if<std::string>(&value.value);
  const bool none = value.is_none() || (text && is_none_text(*text) && f.kind != FieldKind::kString);
  visit_kind(f.kind, [&]<typename T>() {
    T& target = *reinterpret_cast<T*>(at);
    if constexpr (is_optional<T>::value) {
      if (none) {
        target.reset();
        return;
      }
      typename is_optional<T>::inner inner{};
      bool ok = false;
      if constexpr (std::is_same_v<T, std::optional<int32_t>>) {
        ok = f.kind == FieldKind::kOptEnum ? choose(f, value, &inner) : to(value, &inner);
      } else {
        ok = to(value, &inner);
      }
      if (!ok) reject(f, value, op);
      target = std::move(inner);
    } else {
      T result{};
      bool ok = false;
      if constexpr (std::is_same_v<T, Tuple>) {
        if (none) {
          target = Tuple::scalar();
          return;
        }
      }
      if constexpr (std::is_same_v<T, DType>) {
        if (none) {
          target = DType::kUnknown;
          return;
        }
      }
      if constexpr (std::is_same_v<T, int32_t>) {
        ok = f.kind == FieldKind::kEnum ? choose(f, value, &result) : to(value, &result);
      } else {
        ok = to(value, &result);
      }
      if (!ok) reject(f, value, op);
      target = std::move(result);
    }
  });
  if (f.kind == FieldKind::kString && !f.choices.empty()) {
    const auto& chosen = *reinterpret_cast<const std::string*>(at);
    if (std::none_of(f.choices.begin(), f.choices.end(), [&](const auto& c) { return c.first == chosen; }))
      reject(f, value, op);
  }
  if ((f.minimum || f.maximum) && !none) {
    AttrValue now = get(params, field);
    double number = 0;
    auto outside = [&](double n) { return (f.minimum && !(n >= *f.minimum)) || (f.maximum && !(n <= *f.maximum)); };
    if (auto* list = std::get_if<AttrValue::List>(&now.value)) {
      for (const AttrValue& item : *list)
        if (to(item, &number) && outside(number)) reject(f, value, op);
    } else if (to(now, &number) && outside(number)) {
      reject(f, value, op);
    }
  }
}

AttrValue SchemaBase::get(const void* params, int field) const {
  const FieldInfo& f = fields_[field];
  const char* at = static_cast<const char*>(params) + f.offset;
  return visit_kind(f.kind, [&]<typename T>() -> AttrValue {
    const T& v = *reinterpret_cast<const T*>(at);
    if constexpr (std::is_same_v<T, int32_t>) {
      if (f.kind == FieldKind::kEnum) return choice_name(f, v);
    }
    if constexpr (std::is_same_v<T, std::optional<int32_t>>) {
      if (f.kind == FieldKind::kOptEnum) return v ? AttrValue(choice_name(f, *v)) : AttrValue();
    }
    return from(v);
  });
}

void SchemaBase::finish(void* params, uint64_t given, std::string_view op) const {
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (!fields_[i].required || (given >> i & 1)) continue;
    ErrorFields e;
    e.op = op;
    e.input = fields_[i].name;
    e.expected = expected_words(fields_[i]);
    e.given = "nothing";
    e.because = "the parameter is required";
    e.fix = "pass " + fields_[i].name + "=...";
    throw ParamError(std::move(e));
  }
  try {
    complete(params);
  } catch (Error& error) {
    ErrorFields outer;
    outer.op = op;
    error.add_context(outer);
    throw;
  }
}

namespace {

[[noreturn]] void unknown_field(const SchemaBase& schema, std::string_view name, std::string_view op) {
  std::string best;
  size_t distance = 4;
  std::string known;
  for (const FieldInfo& f : schema.fields()) {
    known += (known.empty() ? "" : ", ") + f.name;
    if (size_t d = edit_distance(f.name, name); d < distance) distance = d, best = f.name;
  }
  ErrorFields e;
  e.op = op;
  e.input = name;
  e.message = "unknown parameter '" + std::string(name) + "'";
  e.because = known.empty() ? "the operator has no parameters" : "its parameters are " + known;
  if (!best.empty()) e.fix = "did you mean '" + best + "'?";
  throw ParamError(std::move(e));
}

bool is_hidden_key(std::string_view key) { return key.size() > 4 && key.starts_with("__") && key.ends_with("__"); }

template <typename Pairs>
ParamsPtr parse_pairs(const SchemaBase& schema, const Pairs& attrs, std::string_view op, bool ignore_unknown) {
  Ref<Params> params = schema.create();
  uint64_t given = 0;
  for (const auto& [name, value] : attrs) {
    int field = schema.find(name);
    if (field < 0) {
      if (ignore_unknown || is_hidden_key(name)) continue;
      unknown_field(schema, name, op);
    }
    schema.set(params->data(), field, AttrValue(value), op);
    given |= uint64_t{1} << field;
  }
  schema.finish(params->data(), given, op);
  return ParamsPtr(params.get());
}

}  // namespace

ParamsPtr SchemaBase::parse(const std::vector<std::pair<std::string, std::string>>& attrs, std::string_view op,
                            bool ignore_unknown) const {
  return parse_pairs(*this, attrs, op, ignore_unknown);
}

ParamsPtr SchemaBase::parse(const std::vector<std::pair<std::string, AttrValue>>& attrs, std::string_view op) const {
  return parse_pairs(*this, attrs, op, false);
}

std::vector<std::pair<std::string, std::string>> SchemaBase::print(const void* params) const {
  Ref<Params> defaults = create();
  std::vector<std::pair<std::string, std::string>> result;
  for (size_t i = 0; i < fields_.size(); ++i) {
    const FieldInfo& f = fields_[i];
    if (f.hidden) continue;
    const int index = static_cast<int>(i);
    std::string text = get(params, index).str();
    if (!f.required && text == get(defaults->data(), index).str()) continue;
    result.emplace_back(f.name, std::move(text));
  }
  return result;
}

bool SchemaBase::equal(const void* a, const void* b) const {
  if (a == b) return true;
  for (const FieldInfo& f : fields_) {
    bool ok = visit_kind(f.kind, [&]<typename T>() {
      return same(*reinterpret_cast<const T*>(static_cast<const char*>(a) + f.offset),
                  *reinterpret_cast<const T*>(static_cast<const char*>(b) + f.offset));
    });
    if (!ok) return false;
  }
  return true;
}

uint64_t SchemaBase::hash(const void* params) const {
  uint64_t h = fields_.size();
  for (const FieldInfo& f : fields_) {
    h = mix_hash(h, visit_kind(f.kind, [&]<typename T>() -> uint64_t {
                   return hash_one(*reinterpret_cast<const T*>(static_cast<const char*>(params) + f.offset));
                 }));
  }
  return h;
}

SchemaBase::~SchemaBase() = default;

FieldBuilder SchemaBase::add_field(std::string_view name, FieldKind kind, size_t offset) {
  FieldInfo info;
  info.name = name;
  info.kind = kind;
  info.offset = offset;
  fields_.push_back(std::move(info));
  return FieldBuilder(fields_.back());
}

FieldBuilder& FieldBuilder::default_value(AttrValue v) {
  info_.default_attr = std::move(v);
  info_.required = false;
  return *this;
}
FieldBuilder& FieldBuilder::default_value(bool v) { return default_value(AttrValue(v)); }
FieldBuilder& FieldBuilder::default_value(int v) { return default_value(AttrValue(v)); }
FieldBuilder& FieldBuilder::default_value(int64_t v) { return default_value(AttrValue(v)); }
FieldBuilder& FieldBuilder::default_value(double v) { return default_value(AttrValue(v)); }
FieldBuilder& FieldBuilder::default_value(const char* v) { return default_value(AttrValue(v)); }
FieldBuilder& FieldBuilder::none_by_default() { return default_value(AttrValue()); }

FieldBuilder& FieldBuilder::range(double low, double high) {
  info_.minimum = low;
  info_.maximum = high;
  return *this;
}

FieldBuilder& FieldBuilder::at_least(double low) {
  info_.minimum = low;
  return *this;
}

FieldBuilder& FieldBuilder::doc(std::string_view text) {
  info_.doc = text;
  return *this;
}

FieldBuilder& FieldBuilder::one_of(std::initializer_list<const char*> names) {
  for (const char* name : names) info_.choices.emplace_back(name, 0);
  return *this;
}

FieldBuilder& FieldBuilder::hidden() {
  info_.hidden = true;
  return *this;
}

FieldBuilder& FieldBuilder::add_choice(std::string_view name, int v) {
  info_.choices.emplace_back(name, v);
  return *this;
}

}  // namespace hybridnet
