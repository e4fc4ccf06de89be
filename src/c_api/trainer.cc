// Trainers: optimizers over parameters.
#include "optimizer/trainer.h"

#include "c_api/group.h"
#include "c_api/model.h"
#include "c_api/status.h"
#include "hybridnet/imperative.h"

using namespace hybridnet;  // the functions below are C: they have no namespace
using c_api::guarded;
using c_api::Pinned;
using c_api::require;
using optimizer::TrainedParameter;

namespace {

struct TrainerHandle final : c_api::Handled {
  static constexpr c_api::HandleKind kKind = c_api::HandleKind::kTrainer;
  TrainerHandle(std::vector<TrainedParameter> parameters, const char* name, const optimizer::Trainer::Texts& settings)
      : trainer(std::move(parameters), name, settings) {}
  optimizer::Trainer trainer;
};

optimizer::Trainer::Texts texts_of(size_t count, const char* const* keys, const char* const* values,
                                   const char* function) {
  optimizer::Trainer::Texts texts;
  if (count > 0) {
    require(keys, function, "keys");
    require(values, function, "values");
  }
  for (size_t i = 0; i < count; ++i) {
    require(keys[i], function, "keys");
    require(values[i], function, "values");
    texts.emplace_back(keys[i], values[i]);
  }
  return texts;
}

// Makes the array a leaf with a gradient, unless it already is one.
void ensure_gradient(const NDArray& array) {
  if (!grad_of(array)) mark_variable(array, c_api::zero_gradient(array), GradReq::kWrite);
}

// Makes the handle of a trainer. leaves: parameters that get a gradient. The handle is made last, so a failed call
// leaves none behind.
void give_trainer(std::vector<TrainedParameter> parameters, const std::vector<NDArray>& leaves, const char* name,
                  const optimizer::Trainer::Texts& settings, HnTrainer* out) {
  auto made = std::make_unique<TrainerHandle>(std::move(parameters), name, settings);
  for (const NDArray& leaf : leaves) ensure_gradient(leaf);
  *out = static_cast<HnTrainer>(c_api::make_handle(std::move(made)));
}

using PinnedTrainer = Pinned<TrainerHandle>;

}  // namespace

int hn_optimizer_count(size_t* out) {
  return guarded([&] {
    require(out, "hn_optimizer_count", "out");
    *out = optimizer::rules().size();
  });
}

int hn_optimizer_name(size_t index, const char** out) {
  return guarded([&] {
    require(out, "hn_optimizer_name", "out");
    const auto& rules = optimizer::rules();
    if (index >= rules.size())
      throw IndexError({.op = "hn_optimizer_name",
                        .input = "index",
                        .expected = "below " + std::to_string(rules.size()),
                        .given = std::to_string(index)});
    *out = rules[index]->name.c_str();
  });
}

int hn_trainer_create(size_t num_parameters, const char* const* names, const HnArray* parameters, const char* optimizer,
                      size_t num_settings, const char* const* keys, const char* const* values, HnTrainer* out) {
  return guarded([&] {
    constexpr const char* kFunction = "hn_trainer_create";
    require(optimizer, kFunction, "optimizer");
    require(out, kFunction, "out");
    const optimizer::Trainer::Texts settings = texts_of(num_settings, keys, values, kFunction);
    const std::vector<NDArray> arrays = c_api::arrays_of(num_parameters, parameters, kFunction, "parameters");
    if (num_parameters > 0) require(names, kFunction, "names");
    std::vector<TrainedParameter> trained;
    for (size_t i = 0; i < num_parameters; ++i) {
      require(names[i], kFunction, "names");
      if (!is_floating(arrays[i].dtype()))
        throw DTypeError({.op = kFunction,
                          .input = names[i],
                          .expected = "a floating dtype",
                          .given = dtype_name(arrays[i].dtype()),
                          .fix = "leave out arrays that have no gradient"});
      trained.push_back({.name = names[i], .weight = arrays[i]});
    }
    give_trainer(std::move(trained), arrays, optimizer, settings, out);
  });
}

int hn_trainer_create_for_model(HnModel model, const char* optimizer, size_t num_settings, const char* const* keys,
                                const char* const* values, HnTrainer* out) {
  return guarded([&] {
    constexpr const char* kFunction = "hn_trainer_create_for_model";
    const Pinned<c_api::ModelHandle> given(model, kFunction, "model");
    require(optimizer, kFunction, "optimizer");
    require(out, kFunction, "out");
    std::vector<TrainedParameter> all;
    std::vector<NDArray> leaves;
    for (size_t i = 0; i < given->parameter_names.size(); ++i) {
      const NDArray weight = given->parameter(i);
      all.push_back({.name = given->parameter_names[i], .weight = weight});
      if (!given->parameter_is_state[i] && is_floating(weight.dtype())) leaves.push_back(weight);
    }
    give_trainer(std::move(all), leaves, optimizer, texts_of(num_settings, keys, values, kFunction), out);
  });
}

int hn_trainer_free(HnTrainer trainer) {
  return guarded([&] { c_api::free_handle<TrainerHandle>(trainer, "hn_trainer_free"); });
}

int hn_trainer_step(HnTrainer trainer, double batch_size, int ignore_stale_grad) {
  return guarded(
      [&] { PinnedTrainer(trainer, "hn_trainer_step", "trainer")->trainer.step(batch_size, ignore_stale_grad != 0); });
}

int hn_trainer_sum_over_group(HnTrainer trainer) {
  return guarded([&] {
    const PinnedTrainer given(trainer, "hn_trainer_sum_over_group", "trainer");
    c_api::current_group();
    given->trainer.sum_over_group();
  });
}

int hn_trainer_num_updates(HnTrainer trainer, int64_t* out) {
  return guarded([&] {
    const PinnedTrainer given(trainer, "hn_trainer_num_updates", "trainer");
    require(out, "hn_trainer_num_updates", "out");
    *out = given->trainer.num_update();
  });
}

int hn_trainer_learning_rate(HnTrainer trainer, double* out) {
  return guarded([&] {
    const PinnedTrainer given(trainer, "hn_trainer_learning_rate", "trainer");
    require(out, "hn_trainer_learning_rate", "out");
    *out = given->trainer.learning_rate();
  });
}

int hn_trainer_set_learning_rate(HnTrainer trainer, double rate) {
  return guarded(
      [&] { PinnedTrainer(trainer, "hn_trainer_set_learning_rate", "trainer")->trainer.set_learning_rate(rate); });
}

int hn_trainer_set_schedule(HnTrainer trainer, const char* schedule, size_t num_arguments, const char* const* keys,
                            const char* const* values) {
  return guarded([&] {
    constexpr const char* kFunction = "hn_trainer_set_schedule";
    const PinnedTrainer given(trainer, kFunction, "trainer");
    if (schedule == nullptr) return given->trainer.drop_schedule();
    given->trainer.set_schedule(schedule, texts_of(num_arguments, keys, values, kFunction));
  });
}

int hn_trainer_setting(HnTrainer trainer, const char* name, const char** out) {
  return guarded([&] {
    const PinnedTrainer given(trainer, "hn_trainer_setting", "trainer");
    require(name, "hn_trainer_setting", "name");
    require(out, "hn_trainer_setting", "out");
    thread_local std::string text;
    text = given->trainer.setting(name);
    *out = text.c_str();
  });
}

int hn_trainer_set_setting(HnTrainer trainer, const char* name, const char* value) {
  return guarded([&] {
    const PinnedTrainer given(trainer, "hn_trainer_set_setting", "trainer");
    require(name, "hn_trainer_set_setting", "name");
    require(value, "hn_trainer_set_setting", "value");
    given->trainer.set_setting(name, value);
  });
}

int hn_trainer_set_multipliers(HnTrainer trainer, const char* parameter, double lr_mult, double wd_mult) {
  return guarded([&] {
    const PinnedTrainer given(trainer, "hn_trainer_set_multipliers", "trainer");
    require(parameter, "hn_trainer_set_multipliers", "parameter");
    given->trainer.set_multipliers(parameter, lr_mult, wd_mult);
  });
}

int hn_trainer_save_states(HnTrainer trainer, const char* path) {
  return guarded([&] {
    const PinnedTrainer given(trainer, "hn_trainer_save_states", "trainer");
    require(path, "hn_trainer_save_states", "path");
    given->trainer.save_states(path);
  });
}

int hn_trainer_load_states(HnTrainer trainer, const char* path) {
  return guarded([&] {
    const PinnedTrainer given(trainer, "hn_trainer_load_states", "trainer");
    require(path, "hn_trainer_load_states", "path");
    given->trainer.load_states(path);
  });
}
