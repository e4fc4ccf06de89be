// Inference: the specs (shapes and dtypes) of one use of an operator from the known ones.
// Threads: a context belongs to one call. is_np_shape and set_np_shape act on the calling thread.
#pragma once

#include <initializer_list>
#include <span>
#include <string>

#include "hybridnet/base.h"
#include "hybridnet/error.h"

namespace hybridnet {

class Op;

// Partial specs of one use of an op. A rule adds all specs that follow from the known ones, in both directions, and
// throws ShapeError / DTypeError on contradiction. The caller adds `op` to the error and checks completeness.
class InferContext {
 public:
  InferContext(const Op& op, std::span<TensorSpec> in, std::span<TensorSpec> out, bool train = false)
      : op_(op), in_(in), out_(out), train_(train) {}
  const Op& op() const { return op_; }
  int num_in() const { return static_cast<int>(in_.size()); }
  int num_out() const { return static_cast<int>(out_.size()); }
  const TensorSpec& in(int i) const { return in_[i]; }
  const TensorSpec& out(int i) const { return out_[i]; }
  const Shape& in_shape(int i) const { return in_[i].shape; }
  const Shape& out_shape(int i) const { return out_[i].shape; }
  DType in_dtype(int i) const { return in_[i].dtype; }
  DType out_dtype(int i) const { return out_[i].dtype; }
  bool train() const { return train_; }
  // Merge `known` into the spec, without its unknown parts; a contradiction throws, naming the input or output.
  void set_in_shape(int i, const Shape& known);
  void set_out_shape(int i, const Shape& known);
  void set_in_dtype(int i, DType known);
  void set_out_dtype(int i, DType known);
  // All listed inputs and outputs have one dtype: unify in every direction. Without lists: all inputs, all outputs.
  void unify_dtypes();
  void unify_dtypes(std::initializer_list<int> inputs, std::initializer_list<int> outputs);
  // All inputs and outputs have one shape.
  void unify_shapes();
  // Input i must be of one of these dtypes, once known.
  void require_dtype(int i, DTypeSet allowed) const;
  std::string input_name(int i) const;
  std::string output_name(int i) const;

 private:
  const Op& op_;
  std::span<TensorSpec> in_, out_;
  bool train_;
};

// NumPy shape semantics of this thread (mx.util.set_np_shape): scalars are (), zero sizes are real. Off: classic MXNet,
// where a full reduction gives (1,).
bool is_np_shape();
bool set_np_shape(bool on);  // returns the previous setting

// Normalizes a negative axis; throws ParamError naming the range. ndim must be known.
int normalize_axis(int64_t axis, int ndim, const char* param = "axis");

}  // namespace hybridnet
