// Programs that are ready to run: operators resolved, attributes parsed. They are kept between steps.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "hybridnet/op.h"
#include "optimizer/rules.h"

namespace hybridnet::optimizer {

// The operator of a call with its constant attributes; `numbers` are the fields that are set from columns of the step's
// numbers.
struct LinkedCall {
  struct Number {
    int field;
    size_t column;
  };
  const Op* op = nullptr;
  ParamsPtr fixed;
  std::vector<Number> numbers;
  std::vector<Operand> inputs;
  Operand target;
  std::optional<Operand> row;  // the result that holds the numbers

  ParamsPtr params(std::span<const double> row) const;
};

// A call for several weights at once: the fields lr, wd, ... of one weight are the lists lrs, wds, ...
struct LinkedGroupCall {
  struct List {
    size_t offset;  // offset of a std::vector<double> in the parameters
    size_t column;
  };
  const Op* op = nullptr;
  ParamsPtr fixed;
  std::vector<LinkedCall::Number> numbers;
  std::vector<List> lists;

  ParamsPtr params(std::span<const std::vector<double>> rows) const;
};

class LinkedProgram {
 public:
  LinkedProgram(const Rule& rule, UpdateProgram program);

  const std::vector<LinkedCall>& calls() const { return calls_; }
  // True if one operator updates any number of weights. Before it, there may be calls that are the same for all weights
  // (those without inputs) and calls that compute the numbers of one weight.
  bool runs_together() const { return runs_together_; }
  const LinkedGroupCall& for_many(size_t count);

 private:
  const Rule& rule_;
  UpdateProgram program_;
  std::vector<LinkedCall> calls_;
  bool runs_together_;
  LinkedGroupCall group_;
  size_t group_size_ = 0;
};

// The most recently used programs of a rule. Not thread-safe.
class LinkedPrograms {
 public:
  std::shared_ptr<LinkedProgram> find(const Rule& rule, const Settings& settings, UpdateSubject subject,
                                      bool allows_native = true);

 private:
  struct Entry {
    Settings settings;
    UpdateSubject subject;
    bool allows_native;
    std::shared_ptr<LinkedProgram> program;
  };
  std::vector<Entry> entries_;
  size_t next_ = 0;
};

}  // namespace hybridnet::optimizer
