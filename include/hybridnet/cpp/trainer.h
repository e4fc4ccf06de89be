// Training with the optimizers of Python's gluon.Trainer, with bit-identical results:
//
//   Trainer trainer(model, "sgd", {{"learning_rate", 0.05}, {"momentum", 0.9}});
//   trainer.set_schedule("CosineScheduler", {{"max_update", 1000}, {"warmup_steps", 50}});
//   for (...) {
//     Array loss;
//     {
//       autograd::Recorder recorder;
//       loss = ...;  // from model.run(...)
//     }
//     loss.backward();
//     trainer.step(batch_size);
//   }
//   trainer.save_states("net.states");  // Python and Java load it, too
#pragma once

#include <map>

#include "hybridnet/cpp/model.h"

namespace hybridnet::cpp {

// The names of all optimizers: "SGD", "Adam", ... Trainers take them in any case.
inline std::vector<std::string> optimizer_names() {
  size_t count = 0;
  detail::check(hn_optimizer_count(&count));
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    detail::check(hn_optimizer_name(i, &name));
    names.emplace_back(name);
  }
  return names;
}

// Safe from any thread; calls run one by one. Copies are the same trainer.
class Trainer {
 public:
  // A trainer of all parameters of a model except its states, such as running means. Settings are the arguments of the
  // optimizer in Python: {{"learning_rate", 0.1}, {"multi_precision", true}}. Throws ValueError for unknown optimizers,
  // ParamError for wrong settings.
  Trainer(const Model& model, const std::string& optimizer, const Attributes& settings = {}) {
    const std::vector<const char*> keys = detail::pointers(settings, &Attribute::name),
                                   values = detail::pointers(settings, &Attribute::value);
    HnTrainer handle = nullptr;
    detail::check(
        hn_trainer_create_for_model(model.get(), optimizer.c_str(), keys.size(), keys.data(), values.data(), &handle));
    handle_ = {handle, &hn_trainer_free};
  }
  // A trainer of named arrays, which become leaves with a gradient; files of states contain the names.
  Trainer(const std::map<std::string, Array>& parameters, const std::string& optimizer,
          const Attributes& settings = {}) {
    std::vector<const char*> names;
    std::vector<HnArray> arrays;
    for (const auto& [name, array] : parameters) {
      names.push_back(name.c_str());
      arrays.push_back(array.get());
    }
    const std::vector<const char*> keys = detail::pointers(settings, &Attribute::name),
                                   values = detail::pointers(settings, &Attribute::value);
    HnTrainer handle = nullptr;
    detail::check(hn_trainer_create(names.size(), names.data(), arrays.data(), optimizer.c_str(), keys.size(),
                                    keys.data(), values.data(), &handle));
    handle_ = {handle, &hn_trainer_free};
  }

  // Updates all parameters by the gradients of the last backward, divided by batch_size: the number of examples if the
  // loss is their sum, 1 if it is their mean. Throws GradientError naming a parameter that backward has not reached
  // since the last step, unless ignore_stale_grad.
  void step(double batch_size, bool ignore_stale_grad = false) const {
    detail::check(hn_trainer_step(handle_.get(), batch_size, ignore_stale_grad));
  }
  // Takes the parameters of process 0 of the group (group.h), and sums the gradients over all processes in each step
  // from now on, like kvstore="dist_sync" in Python. All processes must call it, with equal names, shapes and dtypes of
  // parameters; batch_size counts the examples of all processes. Throws GroupError.
  const Trainer& sum_over_group() const {
    detail::check(hn_trainer_sum_over_group(handle_.get()));
    return *this;
  }
  // The number of updates so far.
  int64_t num_updates() const {
    int64_t count = 0;
    detail::check(hn_trainer_num_updates(handle_.get(), &count));
    return count;
  }

  double learning_rate() const {
    double rate = 0;
    detail::check(hn_trainer_learning_rate(handle_.get(), &rate));
    return rate;
  }
  // Throws ValueError if there is a schedule.
  void set_learning_rate(double rate) const { detail::check(hn_trainer_set_learning_rate(handle_.get(), rate)); }
  // "FactorScheduler", "MultiFactorScheduler", "PolyScheduler", "CosineScheduler" with the arguments of
  // mx.lr_scheduler. base_lr is the learning rate of the trainer if it is not among them.
  void set_schedule(const std::string& schedule, const Attributes& arguments) const {
    const std::vector<const char*> keys = detail::pointers(arguments, &Attribute::name),
                                   values = detail::pointers(arguments, &Attribute::value);
    detail::check(hn_trainer_set_schedule(handle_.get(), schedule.c_str(), keys.size(), keys.data(), values.data()));
  }
  void drop_schedule() const { detail::check(hn_trainer_set_schedule(handle_.get(), nullptr, 0, nullptr, nullptr)); }

  // A setting of the optimizer as text: setting("momentum") is "0.9".
  std::string setting(const std::string& name) const {
    const char* text = nullptr;
    detail::check(hn_trainer_setting(handle_.get(), name.c_str(), &text));
    return text;
  }
  // Sets a setting, from the next step on.
  void set_setting(const Attribute& setting) const {
    detail::check(hn_trainer_set_setting(handle_.get(), setting.name.c_str(), setting.value.c_str()));
  }
  // Factors of learning rate and weight decay of one parameter.
  void set_multipliers(const std::string& parameter, double lr_mult, double wd_mult = 1) const {
    detail::check(hn_trainer_set_multipliers(handle_.get(), parameter.c_str(), lr_mult, wd_mult));
  }

  // Save and load the states, settings, counts and schedule of the optimizer, in the format of gluon.Trainer in Python.
  // A file is written whole or not at all; loading changes nothing if it throws.
  void save_states(const std::string& file) const {
    detail::check(hn_trainer_save_states(handle_.get(), file.c_str()));
  }
  void load_states(const std::string& file) const {
    detail::check(hn_trainer_load_states(handle_.get(), file.c_str()));
  }

  HnTrainer get() const { return handle_.get(); }

 private:
  std::shared_ptr<HnTrainer_> handle_;
};

}  // namespace hybridnet::cpp
