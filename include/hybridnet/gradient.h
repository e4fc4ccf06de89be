// Gradient rules, the values that they read, and the emitter that receives their operators. One rule serves the tape,
// which runs operators at once, and the gradient pass, which adds nodes to a graph.
// Threads: a rule runs on the thread that differentiates; Emitter::current() is that thread's.
// Throws: rules throw ParamError or UnsupportedError for uses without a gradient.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "hybridnet/base.h"
#include "hybridnet/kernel.h"
#include "hybridnet/params.h"

namespace hybridnet {

class Op;

// An entry of a graph under construction, or an array: gradient rules do not know which. Null means symbolic zero.
class Object : public RefCounted<Object> {
 public:
  virtual ~Object() = default;
};
struct Value {
  Ref<Object> object;
  uint32_t index = 0;
  explicit operator bool() const { return static_cast<bool>(object); }
};
using Values = std::vector<Value>;

// Adds nodes to a graph (gradient pass) or invokes ops at once on arrays (tape).
class Emitter {
 public:
  virtual ~Emitter() = default;
  virtual Values emit(const Op& op, ParamsPtr params, std::span<const Value> inputs) = 0;  // visible and hidden outputs
  virtual TensorSpec spec(const Value& v) const = 0;
  static Emitter& current();  // the emitter of this thread; valid inside gradient and compose rules (ops/emit.h)

  class Scope {
   public:
    explicit Scope(Emitter& e);
    ~Scope();

   private:
    Emitter* before_;
  };
};

// The forward values that a gradient rule reads. Only these are kept alive, and only overwriting these is an error.
struct Saves {
  uint64_t inputs = 0, outputs = 0;
  static constexpr Saves nothing() { return {}; }
  static constexpr Saves all() { return {~uint64_t{0}, ~uint64_t{0}}; }
  static constexpr Saves all_inputs() { return {~uint64_t{0}, 0}; }
  static constexpr Saves all_outputs() { return {0, ~uint64_t{0}}; }
  static constexpr Saves of(std::initializer_list<int> in, std::initializer_list<int> out = {}) {
    Saves s;
    for (int i : in) s.inputs |= uint64_t{1} << i;
    for (int i : out) s.outputs |= uint64_t{1} << i;
    return s;
  }
  bool input(int i) const { return inputs >> (i < 63 ? i : 63) & 1; }
  bool output(int i) const { return outputs >> (i < 63 ? i : 63) & 1; }
};

class GradientContext {
 public:
  virtual ~GradientContext() = default;
  virtual int num_inputs() const = 0;
  virtual int num_outputs() const = 0;                    // hidden ones included
  virtual Value input(int i) const = 0;                   // throws Error if not declared in Saves
  virtual Value output(int i) const = 0;                  // throws Error if not declared in Saves
  virtual Value output_grad(int i) const = 0;             // null: nothing arrives (symbolic zero)
  virtual const TensorSpec& input_spec(int i) const = 0;  // always known
  virtual const TensorSpec& output_spec(int i) const = 0;
  virtual bool wants(int i) const = 0;  // true if the gradient of input i is needed; if not, skip the work
  virtual bool train() const = 0;
  virtual RngKey rng() const { return {}; }
};

}  // namespace hybridnet
