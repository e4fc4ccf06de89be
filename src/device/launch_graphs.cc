#include "device/launch_graphs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/hash.h"
#include "device/stream.h"
#include "hybridnet/error.h"

namespace hybridnet::device {

// ---- lists of launches
void LaunchList::add(const Backend::Launch& launch) {
  const size_t offset = (arguments_.size() + kAlignment - 1) / kAlignment * kAlignment;
  arguments_.resize(offset + launch.bytes);
  if (launch.bytes > 0) std::memcpy(arguments_.data() + offset, launch.arguments, launch.bytes);
  launches_.push_back(launch);
  launches_.back().arguments = nullptr;
  offsets_.push_back(offset);
}

void LaunchList::clear() {
  launches_.clear();
  offsets_.clear();
  arguments_.clear();
}

Backend::Launch LaunchList::operator[](size_t i) const {
  Backend::Launch launch = launches_[i];
  launch.arguments = arguments_.data() + offsets_[i];
  return launch;
}

bool LaunchList::ends_with_begin() const {
  using Kind = Backend::Launch::Kind;
  return !launches_.empty() && (launches_.back().kind == Kind::kIf || launches_.back().kind == Kind::kWhile);
}

bool LaunchList::has_arguments_of(size_t i, const LaunchList& other) const {
  const Backend::Launch mine = (*this)[i], its = other[i];
  return mine.bytes == 0 || std::memcmp(mine.arguments, its.arguments, mine.bytes) == 0;
}

void LaunchList::copy_arguments(size_t i, const LaunchList& from) {
  std::memcpy(arguments_.data() + offsets_[i], from[i].arguments, launches_[i].bytes);
}

uint64_t LaunchList::hash_of_kernels() const {
  uint64_t hash = launches_.size();
  for (const Backend::Launch& launch : launches_) {
    hash = mix_hash(hash, reinterpret_cast<uintptr_t>(launch.function));
    for (int axis = 0; axis < 3; ++axis)
      hash = mix_hash(hash, (uint64_t{launch.geometry.grid[axis]} << 32) | launch.geometry.block[axis]);
    hash = mix_hash(hash, launch.bytes);
    if (launch.kind != Backend::Launch::Kind::kKernel)
      hash = mix_hash(hash, launch.condition << 8 | static_cast<uint64_t>(launch.kind));
  }
  return avalanche(hash);
}

bool LaunchList::has_kernels_of(const LaunchList& other) const {
  const auto is_same = [](const Backend::Launch& a, const Backend::Launch& b) {
    return a.kind == b.kind && a.condition == b.condition && a.function == b.function && a.bytes == b.bytes &&
           a.set_conditions == b.set_conditions && std::equal(a.geometry.grid, a.geometry.grid + 3, b.geometry.grid) &&
           std::equal(a.geometry.block, a.geometry.block + 3, b.geometry.block);
  };
  return launches_.size() == other.launches_.size() &&
         std::equal(launches_.begin(), launches_.end(), other.launches_.begin(), is_same);
}

uint64_t LaunchList::hash_of_arguments() const {
  uint64_t hash = arguments_.size();
  for (size_t at = 0; at < arguments_.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;  // the last one may be shorter
    std::memcpy(&word, arguments_.data() + at, std::min(sizeof word, arguments_.size() - at));
    hash = mix_hash(hash, word);
  }
  return hash;
}

// ---- graphs
struct LaunchGraphs::Graph {
  Graph(Backend::Graph made, const LaunchList& launches, uint64_t hash)
      : handle(made), nodes(launches), kernels(hash) {}
  ~Graph() { backend()->free_graph(handle); }
  Graph(const Graph&) = delete;

  const Backend::Graph handle;
  LaunchList nodes;  // their present arguments
  const uint64_t kernels;
  uint64_t last_use = 0;
};

LaunchGraphs::LaunchGraphs() = default;
LaunchGraphs::~LaunchGraphs() = default;

bool LaunchGraphs::begin_run() {
  if (busy_.test_and_set(std::memory_order_acquire)) return false;
  constexpr int kRunsBefore = 1;  // the first run compiles kernels, and many plans run once
  const bool collects = !gave_up_ && runs_ >= kRunsBefore && backend()->makes_graphs();
  if (runs_ < kRunsBefore) ++runs_;
  next_part_ = kRecorded + 1;
  if (!collects) busy_.clear(std::memory_order_release);
  return collects;
}

LaunchGraphs::Graph* LaunchGraphs::find(Part& part, const LaunchList& launches, uint64_t kernels) {
  for (const std::unique_ptr<Graph>& graph : part.graphs)
    if (graph->kernels == kernels && graph->nodes.has_kernels_of(launches)) return graph.get();
  return nullptr;
}

// Frees the graphs that were used longest ago, of this part if it has too many.
void LaunchGraphs::make_room(Part& part, size_t nodes) {
  const auto is_older = [](const std::unique_ptr<Graph>& a, const std::unique_ptr<Graph>& b) {
    return a->last_use < b->last_use;
  };
  const auto free_oldest = [&](Part& of) {
    const auto oldest = std::min_element(of.graphs.begin(), of.graphs.end(), is_older);
    nodes_ -= (*oldest)->nodes.size();
    of.graphs.erase(oldest);
  };
  if (part.graphs.size() == (&part == &parts_[kRecorded] ? kMostRecorded : kMostGraphs)) free_oldest(part);
  while (nodes_ + nodes > kMostNodes) {
    Part* oldest = nullptr;
    const auto first_use = [&](const Part& of) {
      return (*std::min_element(of.graphs.begin(), of.graphs.end(), is_older))->last_use;
    };
    for (Part& of : parts_)
      if (!of.graphs.empty() && (oldest == nullptr || first_use(of) < first_use(*oldest))) oldest = &of;
    free_oldest(*oldest);
  }
}

LaunchGraphs::Graph* LaunchGraphs::make(Part& part, const LaunchList& launches, uint64_t kernels) {
  make_room(part, launches.size());
  std::vector<Backend::Launch> all;
  for (size_t i = 0; i < launches.size(); ++i) all.push_back(launches[i]);
  part.graphs.push_back(std::make_unique<Graph>(backend()->make_graph(all), launches, kernels));
  nodes_ += launches.size();
  return part.graphs.back().get();
}

void LaunchGraphs::set_nodes(Graph& graph, const LaunchList& launches, const std::vector<size_t>& changed) {
  for (const size_t i : changed) {
    backend()->set_node(graph.handle, i, launches[i]);
    graph.nodes.copy_arguments(i, launches);
  }
}

namespace {

std::vector<size_t> changed_nodes(const LaunchList& before, const LaunchList& now) {
  std::vector<size_t> changed;
  for (size_t i = 0; i < now.size(); ++i)
    if (!before.has_arguments_of(i, now)) changed.push_back(i);
  return changed;
}

}  // namespace

// Sets the arguments of the nodes. False if most have changed and the run before had others, too: then setting them
// costs more than launching.
bool LaunchGraphs::update(Part& part, Graph& graph, const LaunchList& launches) {
  const std::vector<size_t> changed = changed_nodes(graph.nodes, launches);
  if (2 * changed.size() > launches.size()) {
    const uint64_t before = std::exchange(part.last_arguments, launches.hash_of_arguments());
    if (part.last_arguments != before) return false;
  }
  set_nodes(graph, launches, changed);
  return true;
}

bool LaunchGraphs::run_as_graph(Part& part, Stream& stream, const LaunchList& launches) {
  const uint64_t kernels = launches.hash_of_kernels();
  const bool repeats = std::exchange(part.last_kernels, kernels) == kernels;
  Graph* graph = find(part, launches, kernels);
  if (graph != nullptr) {
    if (!update(part, *graph, launches)) return false;
  } else if (repeats) {
    graph = make(part, launches, kernels);
  } else {
    return false;
  }
  graph->last_use = ++clock_;
  backend()->launch(graph->handle, stream.own_handle());
  return true;
}

// Recorded launches share the first part: a loop that an outer loop of the host launches again and again has few
// graphs.
bool LaunchGraphs::submit_as_graph(Stream& stream, const LaunchList& launches) {
  if (!makes_conditions() || launches.size() > kMostNodes) return false;
  try {
    Graph* const graph = prepare_recorded(launches);
    graph->last_use = ++clock_;
    backend()->launch(graph->handle, stream.own_handle());
    return true;
  } catch (const Error&) {
    gave_up_conditions_ = true;  // the graphs that are there are freed with the plan
    return false;
  }
}

// The graph of these kernels with the fewest changes. Another one is made if most arguments have changed, as they do if
// two loops of a plan have the same kernels, but not for each run of a loop whose memory always changes.
LaunchGraphs::Graph* LaunchGraphs::prepare_recorded(const LaunchList& launches) {
  constexpr size_t kMostAlike = 4;
  Part& part = part_number(kRecorded);
  const uint64_t kernels = launches.hash_of_kernels();
  Graph* best = nullptr;
  std::vector<size_t> changed;
  size_t alike = 0;
  for (const std::unique_ptr<Graph>& graph : part.graphs) {
    if (graph->kernels != kernels || !graph->nodes.has_kernels_of(launches)) continue;
    ++alike;
    std::vector<size_t> of_graph = changed_nodes(graph->nodes, launches);
    if (best != nullptr && of_graph.size() >= changed.size()) continue;
    best = graph.get();
    changed = std::move(of_graph);
  }
  if (best == nullptr || (2 * changed.size() > launches.size() && alike < kMostAlike))
    return make(part, launches, kernels);
  try {
    set_nodes(*best, launches, changed);
    return best;
  } catch (const Error&) {
    // A driver that sets no nodes in conditional parts gets a new graph.
    nodes_ -= best->nodes.size();
    std::erase_if(part.graphs, [best](const std::unique_ptr<Graph>& graph) { return graph.get() == best; });
    return make(part, launches, kernels);
  }
}

LaunchGraphs::Part& LaunchGraphs::part_number(size_t number) {
  if (parts_.size() <= number) parts_.resize(number + 1);
  return parts_[number];
}

void LaunchGraphs::submit(Stream& stream, const LaunchList& launches) {
  const size_t number = next_part_++;
  if (!gave_up_ && launches.size() >= kLeastLaunches && number < kMostNodes / kLeastLaunches) {
    try {
      if (run_as_graph(part_number(number), stream, launches)) return;
    } catch (const Error&) {
      gave_up_ = true;  // the launches below say what is wrong, if anything is
      parts_.clear();
      nodes_ = 0;
    }
  }
  for (size_t i = 0; i < launches.size(); ++i) {
    const Backend::Launch launch = launches[i];
    backend()->launch(launch.function, launch.geometry, stream.own_handle(), launch.arguments, launch.bytes);
  }
}

}  // namespace hybridnet::device
