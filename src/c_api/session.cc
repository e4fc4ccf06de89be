// Sessions: arrays bound to a model.
#include "c_api/model.h"
#include "c_api/status.h"
#include "plan/bound_run.h"

using namespace hybridnet;  // the functions below are C: they have no namespace
using c_api::guarded;
using c_api::ModelHandle;
using c_api::Pinned;
using c_api::require;

namespace {

struct SessionHandle final : c_api::Handled {
  static constexpr c_api::HandleKind kKind = c_api::HandleKind::kSession;
  SessionHandle(Ref<GraphCallable> function, std::vector<NDArray> inputs, std::span<const NDArray> outputs)
      : call(std::move(function), std::move(inputs), outputs, BoundRun::Calls::kMany) {}
  BoundRun call;
};

}  // namespace

int hn_session_create(HnModel model, size_t num_inputs, const HnArray* inputs, size_t num_outputs,
                      const HnArray* outputs, HnSession* out) {
  return guarded([&] {
    const Pinned<ModelHandle> given(model, "hn_session_create", "model");
    require(out, "hn_session_create", "out");
    std::vector<NDArray> in = given->with_inputs(num_inputs, inputs, "hn_session_create");
    std::vector<NDArray> results;
    if (outputs || num_outputs > 0)
      c_api::check_count(num_outputs, given->output_names, "hn_session_create", "num_outputs");
    if (outputs) {
      results = c_api::arrays_of(num_outputs, outputs, "hn_session_create", "outputs");
      c_api::require_on_device(results, given->output_names, in.empty() ? Device{} : in[0].device(),
                               "hn_session_create");
    }
    *out = static_cast<HnSession>(
        c_api::make_handle(std::make_unique<SessionHandle>(given->op(), std::move(in), results)));
  });
}

int hn_session_free(HnSession session) {
  return guarded([&] { c_api::free_handle<SessionHandle>(session, "hn_session_free"); });
}

int hn_session_output(HnSession session, size_t index, HnArray* out) {
  return guarded([&] {
    const Pinned<SessionHandle> given(session, "hn_session_output", "session");
    require(out, "hn_session_output", "out");
    const std::vector<NDArray>& outputs = given->call.outputs();
    if (index >= outputs.size())
      throw IndexError({.op = "hn_session_output",
                        .input = "index",
                        .expected = "below " + std::to_string(outputs.size()),
                        .given = std::to_string(index)});
    *out = c_api::give_array(outputs[index]);
  });
}

int hn_session_run(HnSession session) {
  return guarded([&] { Pinned<SessionHandle>(session, "hn_session_run", "session")->call.run(); });
}
