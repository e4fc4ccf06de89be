// Helpers of the generated functions of nd.h: required parameters, and conversion of parameters to attributes.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hybridnet/cpp/array.h"

namespace hybridnet::cpp {

// A required parameter: a call without it does not compile.
template <typename T>
struct Required {
  template <std::convertible_to<T> U>
  Required(U&& given) : value(std::forward<U>(given)) {}  // NOLINT: implicit on purpose
  T value;
};
template <typename E>
struct Required<std::vector<E>> {
  Required(std::initializer_list<E> given) : value(given) {}   // NOLINT
  Required(std::vector<E> given) : value(std::move(given)) {}  // NOLINT
  std::vector<E> value;
};

// A list of numbers, or None: {2, 3}, std::nullopt.
struct OptionalInts : std::optional<std::vector<int64_t>> {
  OptionalInts(std::nullopt_t) {}                                                                      // NOLINT
  OptionalInts(std::initializer_list<int64_t> given) : std::optional<std::vector<int64_t>>(given) {}   // NOLINT
  OptionalInts(std::vector<int64_t> given) : std::optional<std::vector<int64_t>>(std::move(given)) {}  // NOLINT
  friend bool operator==(const OptionalInts& a, const OptionalInts& b) {
    return a.has_value() == b.has_value() && (!a.has_value() || a.value() == b.value());
  }
};

namespace detail {

template <typename T>
void add(Attributes& attributes, const char* name, const Required<T>& given) {
  attributes.emplace_back(name, given.value);
}
// Leaves out a parameter that has its default value.
template <typename T>
void add(Attributes& attributes, const char* name, const T& given, const T& default_value) {
  if (!(given == default_value)) attributes.emplace_back(name, given);
}

}  // namespace detail
}  // namespace hybridnet::cpp
