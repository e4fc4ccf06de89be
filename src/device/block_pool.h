// Blocks of memory that a device uses, kept by size when they are freed: what the pools of devices and of pinned memory
// have in common. A block carries its unfinished work (StreamUse).
// Owner:   the process: pools are made at first use and stay.
// Threads: any; new_block() and give_back() are called under the pool's mutex, one at a time.
// Throws:  what new_block() and give_back() throw.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "hybridnet/storage.h"

namespace hybridnet::device {

class BlockPool : public Storage {
 public:
  void release_pool() override;
  Statistics statistics() const override;
  void reset_peak() override;
  DerivedBudget& derived_budget() override { return derived_; }
  void before_fork() override { mutex_.lock(); }
  void after_fork(bool) override { mutex_.unlock(); }

 protected:
  BlockPool() : derived_(0) {}

  // A spare block of this size, else new_block(bytes), with statistics. Without data: there is no memory left.
  Block take(int64_t bytes);
  void keep(const Block& block);  // the last kept is the first to be taken
  virtual Block new_block(int64_t bytes) = 0;
  virtual void give_back(void* data) = 0;

  // For new_block(). give_all_back() gives the spare blocks back, each when the work on it is done.
  void give_all_back();
  const Statistics& counts() const { return statistics_; }

 private:
  mutable std::mutex mutex_;  // guards the members below
  std::map<int64_t, std::vector<Block>> spares_;
  Statistics statistics_;
  DerivedBudget derived_;  // no copies are derived from such arrays
};

}  // namespace hybridnet::device
