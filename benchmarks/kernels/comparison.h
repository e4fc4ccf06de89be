// Comparisons of our kernels with the library's primitives for the same work on the same memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/dnnl/program.h"

namespace hybridnet::benchmarks {

// Aligned memory of n elements, filled with random values in [-1, 1].
template <typename T>
class Buffer {
 public:
  explicit Buffer(int64_t n) : n_(n), data_(allocate(n)) {
    static std::mt19937 generator(7);
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (int64_t i = 0; i < n; ++i) data_.get()[i] = static_cast<T>(uniform(generator));
  }
  int64_t size() const { return n_; }
  T* get() const { return data_.get(); }
  std::shared_ptr<void> share() const { return data_; }
  Buffer copy() const {
    Buffer other(n_);
    std::copy_n(get(), n_, other.get());
    return other;
  }

 private:
  static std::shared_ptr<T> allocate(int64_t n) {
    const size_t bytes = (static_cast<size_t>(std::max<int64_t>(n, 1)) * sizeof(T) + 63) / 64 * 64;
    void* memory = std::aligned_alloc(64, bytes);
    if (!memory) throw std::bad_alloc();
    return {static_cast<T*>(memory), [](T* p) { std::free(p); }};
  }
  int64_t n_;
  std::shared_ptr<T> data_;  // shared by copies of this object: closures own their tensors
};
using Floats = Buffer<float>;
using Doubles = Buffer<double>;

// The largest difference relative to the largest value.
template <typename T>
double difference(const Buffer<T>& a, const Buffer<T>& b) {
  double largest = 1e-30, off = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(b.get()[i])));
    const double d = std::abs(static_cast<double>(a.get()[i]) - static_cast<double>(b.get()[i]));
    off = std::isnan(d) ? std::numeric_limits<double>::infinity() : std::max(off, d);
  }
  return off / largest;
}

// Primitives of oneDNN, which run one after the other. Owns its tensors.
class Library {
 public:
  using Memory = std::shared_ptr<void>;
  struct Tensor {
    int id;
    onednn::Desc desc;
    Memory data;
    Tensor(int argument, onednn::Desc d, Memory memory) : id(argument), desc(std::move(d)), data(std::move(memory)) {}
    Tensor(int argument, onednn::Desc d, const Buffer<float>& b) : Tensor(argument, std::move(d), b.share()) {}
  };
  void add(const dnnl::primitive_desc_base& pd, const std::vector<Tensor>& tensors) {
    std::vector<onednn::Program::Argument> arguments;
    for (const Tensor& t : tensors) {
      arguments.push_back({t.id, t.desc, onednn::Place::tensor(static_cast<int>(externals_.size()))});
      externals_.push_back(t.data.get());
      owned_.push_back(t.data);
    }
    program_.add(pd, std::move(arguments));
  }
  // Returns the tensor in the layout that a primitive requires. `once`: the copy is made now, not in each run.
  Memory in_layout(const onednn::Desc& from, const Memory& data, const onednn::Desc& to, bool once) {
    if (from == to) return data;
    const Memory target = memory(to);
    const dnnl::reorder::primitive_desc pd(onednn::cpu_engine(), from, onednn::cpu_engine(), to,
                                           onednn::user_scratchpad());
    if (once) {
      Library now;
      now.add(pd, {{DNNL_ARG_FROM, from, data}, {DNNL_ARG_TO, to, target}});
      now.run();
    } else {
      add(pd, {{DNNL_ARG_FROM, from, data}, {DNNL_ARG_TO, to, target}});
    }
    return target;
  }
  static Memory memory(const onednn::Desc& desc) { return Buffer<char>(static_cast<int64_t>(desc.get_size())).share(); }
  void run() {
    if (!workspace_) workspace_ = std::make_unique<Buffer<char>>(program_.workspace_bytes());
    program_.run(externals_, workspace_->get());
  }

 private:
  onednn::Program program_;
  std::vector<void*> externals_;
  std::vector<Memory> owned_;
  std::unique_ptr<Buffer<char>> workspace_;
};

inline onednn::Desc layout(dnnl::memory::dims sizes, dnnl::memory::format_tag tag) {
  return {std::move(sizes), dnnl::memory::data_type::f32, tag};
}

struct Comparison {
  std::string kernel, work;
  std::function<void()> ours, library;
  std::function<double()> off;  // after both have run: the difference of the results
};
using Comparisons = std::vector<Comparison>;

// Each function adds its pairs, made for the cores of the calling thread.
void add_dense(Comparisons& all);
void add_convolution(Comparisons& all);
void add_pooling(Comparisons& all);
void add_normalization(Comparisons& all);
void add_softmax(Comparisons& all);
void add_recurrent(Comparisons& all);
void add_resize(Comparisons& all);
void add_linalg(Comparisons& all);

}  // namespace hybridnet::benchmarks
