// The settings of an optimizer. One struct holds the settings of all optimizers; the schema of a rule (rules.h) defines
// which of them the optimizer has, with its own defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hybridnet/params.h"

namespace hybridnet::optimizer {

struct Settings {
  // Settings of every optimizer.
  double learning_rate = 0.01, wd = 0, rescale_grad = 1;
  std::optional<double> clip_gradient;
  bool multi_precision = false;
  int64_t begin_num_update = 0;
  // Settings of some optimizers.
  double momentum = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, eps = 0, eta = 0.001;
  double gamma1 = 0.9, gamma2 = 0.9, rho = 0.9, lamda = 0, lamda1 = 0, beta = 0, wd_lh = 0, schedule_decay = 0;
  std::optional<double> lower_bound, upper_bound, clip_weights;
  bool lazy_update = true, correct_bias = true, bias_correction = true, centered = false, momentum_correction = true;
  std::string warmup_strategy = "linear";
  int64_t warmup_epochs = 0, batch_scale = 1, updates_per_epoch = 1, begin_epoch = 0, num_epochs = 1;
  // The progress of training: changed by steps, saved in files of states, not set by users.
  double m_schedule = 1;
  std::optional<double> last_lr, cur_lr;

  bool operator==(const Settings&) const = default;
};

// The members of P that a user may set: each optimizer and each schedule has its own schema.
template <typename P>
class FieldsSchema final : public SchemaBase {
 public:
  template <typename M>
  FieldBuilder field(std::string_view name, M P::*member) {
    P probe{};
    const auto offset = reinterpret_cast<char*>(&(probe.*member)) - reinterpret_cast<char*>(&probe);
    return add_field(name, detail::field_kind<M>::value, static_cast<size_t>(offset));
  }
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

 private:
  struct Box final : Params {
    P value{};
    void* data() override { return &value; }
  };
};
using SettingsSchema = FieldsSchema<Settings>;

}  // namespace hybridnet::optimizer
