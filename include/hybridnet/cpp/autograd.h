// Recording and gradients.
//
//   x.attach_grad();
//   Array loss;
//   {
//     autograd::Recorder recorder;
//     loss = nd::sum(nd::square(x));
//   }
//   loss.backward();  // x.grad() holds 2 * x
#pragma once

#include "hybridnet/cpp/array.h"

namespace hybridnet::cpp::autograd {

// While it lives, this thread records its operators for gradients (`record`) and runs them in training mode (`train`).
class Recorder {
 public:
  explicit Recorder(bool train = true, bool record = true) {
    detail::check(hn_autograd_set_recording(record, &recording_before_));
    detail::check(hn_autograd_set_training(train, &training_before_));
  }
  ~Recorder() {
    hn_autograd_set_recording(recording_before_, nullptr);
    hn_autograd_set_training(training_before_, nullptr);
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

 private:
  int recording_before_ = 0, training_before_ = 0;
};

// While it lives, nothing is recorded.
class Pause : public Recorder {
 public:
  explicit Pause(bool train = false) : Recorder(train, false) {}
};

inline bool is_recording() {
  int on = 0;
  detail::check(hn_autograd_is_recording(&on));
  return on != 0;
}
inline bool is_training() {
  int on = 0;
  detail::check(hn_autograd_is_training(&on));
  return on != 0;
}

// Computes the gradients of the leaves. head_grads: the gradients of the heads; empty, or no array for a head: ones.
inline void backward(const std::vector<Array>& heads, const std::vector<Array>& head_grads = {},
                     bool retain_graph = false, bool train_mode = true) {
  if (!head_grads.empty() && head_grads.size() != heads.size())
    throw ValueError("expected " + std::to_string(heads.size()) + " head_grads, got " +
                     std::to_string(head_grads.size()));
  const std::vector<HnArray> of = detail::handles(heads), given = detail::handles(head_grads);
  detail::check(
      hn_autograd_backward(of.size(), of.data(), given.empty() ? nullptr : given.data(), retain_graph, train_mode));
}

// Returns the gradients with respect to variables as new arrays. create_graph: their gradients can be computed, too.
inline std::vector<Array> grad(const std::vector<Array>& heads, const std::vector<Array>& variables,
                               const std::vector<Array>& head_grads = {}, bool create_graph = false,
                               bool train_mode = true) {
  if (!head_grads.empty() && head_grads.size() != heads.size())
    throw ValueError("expected " + std::to_string(heads.size()) + " head_grads, got " +
                     std::to_string(head_grads.size()));
  const std::vector<HnArray> of = detail::handles(heads), given = detail::handles(head_grads),
                             by = detail::handles(variables);
  std::vector<HnArray> found(variables.size(), nullptr);
  detail::check(hn_autograd_grad(of.size(), of.data(), given.empty() ? nullptr : given.data(), by.size(), by.data(),
                                 create_graph, create_graph, train_mode, found.data()));
  std::vector<Array> result;
  for (HnArray handle : found) result.emplace_back(handle);
  return result;
}

}  // namespace hybridnet::cpp::autograd
