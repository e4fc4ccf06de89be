// Trainers of several processes, through the group of this process (group/current.h). The processes make the same calls
// as those whose trainer is gluon.Trainer with kvstore="dist_sync", so they may train in one job.
// Threads: any; all processes make these calls in one order.
// Throws:  GroupError, ParamError; GroupErrors of sums are kept on the gradients until they are waited for.
#pragma once

#include <span>

#include "optimizer/trainer.h"

namespace hybridnet::optimizer {

// Overwrites the values by those of process 0.
void take_values_of_first_process(std::span<const TrainedParameter> parameters);
// Overwrites the gradients by their sums over all processes, which must all divide by batch_size. The last parameters
// come first: their gradients are ready first.
void sum_gradients(std::span<const TrainedParameter> parameters, double batch_size);
// A parameter that the backward of any process has reached is updated in all; its gradient becomes zero where it was
// not reached.
void agree_on_stale_gradients(std::span<const TrainedParameter> parameters);

}  // namespace hybridnet::optimizer
