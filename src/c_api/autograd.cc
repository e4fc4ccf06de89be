// Recording and gradients.
#include "c_api/arrays.h"
#include "c_api/status.h"
#include "hybridnet/imperative.h"
#include "imperative/write_history.h"

using namespace hybridnet;  // the functions below are C: they have no namespace
using c_api::array_of;
using c_api::arrays_of;
using c_api::guarded;
using c_api::require;

namespace {

int set_mode(bool AutogradState::*member, int on, int* before) {
  return guarded([&] {
    const bool was = std::exchange(autograd_state().*member, on != 0);
    if (before) *before = was;
  });
}

int get_mode(bool AutogradState::*member, int* out, const char* function) {
  return guarded([&] {
    require(out, function, "out");
    *out = autograd_state().*member;
  });
}

std::vector<NDArray> head_gradients(size_t num_heads, const HnArray* head_grads, const char* function) {
  if (!head_grads) return {};
  return arrays_of(num_heads, head_grads, function, "head_grads", true);
}

}  // namespace

int hn_autograd_set_recording(int on, int* before) {
  if (on != 0 && !autograd_state().recording) WriteHistory::drop_unseen();
  return set_mode(&AutogradState::recording, on, before);
}
int hn_autograd_set_training(int on, int* before) { return set_mode(&AutogradState::training, on, before); }
int hn_autograd_is_recording(int* out) { return get_mode(&AutogradState::recording, out, "hn_autograd_is_recording"); }
int hn_autograd_is_training(int* out) { return get_mode(&AutogradState::training, out, "hn_autograd_is_training"); }

int hn_array_attach_grad(HnArray array, const char* grad_req) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_array_attach_grad", "array");
    require(grad_req, "hn_array_attach_grad", "grad_req");
    const GradReq req = grad_req_from_name(grad_req);
    mark_variable(given, req == GradReq::kNull ? NDArray() : c_api::zero_gradient(given), req);
  });
}

int hn_array_attach_grad_in(HnArray array, const char* grad_req, const char* storage) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_array_attach_grad_in", "array");
    require(grad_req, "hn_array_attach_grad_in", "grad_req");
    require(storage, "hn_array_attach_grad_in", "storage");
    const GradReq req = grad_req_from_name(grad_req);
    const StorageType type = storage_type_from_name(storage);
    mark_variable(given, req == GradReq::kNull ? NDArray() : c_api::zero_gradient(given, type), req);
  });
}

int hn_array_grad(HnArray array, HnArray* out) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_array_grad", "array");
    require(out, "hn_array_grad", "out");
    const NDArray gradient = grad_of(given);
    if (!gradient)
      throw GradientError({.op = "hn_array_grad",
                           .input = "array",
                           .message = "the array has no gradient",
                           .fix = "call hn_array_attach_grad before the computation is recorded"});
    *out = c_api::give_array(gradient);
  });
}

int hn_array_detach(HnArray array, HnArray* out) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_array_detach", "array");
    require(out, "hn_array_detach", "out");
    *out = c_api::give_array(as_detached(given));
  });
}

int hn_autograd_backward(size_t num_heads, const HnArray* heads, const HnArray* head_grads, int retain_graph,
                         int train_mode) {
  return guarded([&] {
    const std::vector<NDArray> of = arrays_of(num_heads, heads, "hn_autograd_backward", "heads");
    const std::vector<NDArray> given = head_gradients(num_heads, head_grads, "hn_autograd_backward");
    if (of.empty())
      throw ValueError({.op = "hn_autograd_backward", .input = "num_heads", .expected = "at least 1", .given = "0"});
    backward(of, given, retain_graph != 0, train_mode != 0);
  });
}

int hn_autograd_grad(size_t num_heads, const HnArray* heads, const HnArray* head_grads, size_t num_variables,
                     const HnArray* variables, int retain_graph, int create_graph, int train_mode, HnArray* out) {
  return guarded([&] {
    const std::vector<NDArray> of = arrays_of(num_heads, heads, "hn_autograd_grad", "heads");
    const std::vector<NDArray> given = head_gradients(num_heads, head_grads, "hn_autograd_grad");
    const std::vector<NDArray> by = arrays_of(num_variables, variables, "hn_autograd_grad", "variables");
    if (of.empty() || by.empty())
      throw ValueError({.op = "hn_autograd_grad",
                        .input = of.empty() ? "num_heads" : "num_variables",
                        .expected = "at least 1",
                        .given = "0"});
    require(out, "hn_autograd_grad", "out");
    c_api::give_arrays(grad(of, given, by, retain_graph != 0, create_graph != 0, train_mode != 0), out);
  });
}
