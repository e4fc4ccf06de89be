// Replaces attention that consists of several operators by one operator, which never stores the matrix of weights.
#include <cmath>
#include <limits>
#include <optional>

#include "graph/control/control_flow.h"
#include "kernels/attention/few_queries.h"
#include "passes/attributes.h"
#include "passes/control/size_questions.h"
#include "passes/gradient/node_builders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kBatchDot{"batch_dot"}, kSoftmax{"softmax"}, kDropout{"Dropout"}, kMultiply{"_mul_scalar"},
    kDivide{"_div_scalar"}, kAdd{"broadcast_add"}, kAddEqual{"elemwise_add"}, kWhere{"where"}, kTranspose{"transpose"},
    kSwapAxis{"SwapAxis"}, kSelfScores{"_contrib_interleaved_matmul_selfatt_qk"},
    kSelfValues{"_contrib_interleaved_matmul_selfatt_valatt"}, kCrossScores{"_contrib_interleaved_matmul_encdec_qk"},
    kCrossValues{"_contrib_interleaved_matmul_encdec_valatt"}, kFused{"_flash_attention"},
    kFusedDropout{"_flash_attention_dropout"};

// Below this many queries or keys, or with longer vectors, two products and a softmax were as fast or faster (measured
// with AVX2 and AVX-512 on one to two cores), unless there are so few queries that they have a kernel of their own.
constexpr int64_t kMinLength = 48, kMaxSize = 128;
// With this many times more weights than elements of the operands, the memory saved matters more than speed.
constexpr int64_t kManyTimes = 8;

int64_t last(const Shape& shape) { return shape[shape.ndim() - 1]; }

// weights: (..., queries, keys). size, value_size: of one query, and of one value.
bool fusing_pays(const Shape& weights, int64_t size, int64_t value_size, DType dtype, bool train) {
  const int64_t queries = weights[weights.ndim() - 2], keys = last(weights);
  const bool few =
      dtype == DType::kFloat64 ? kernels::has_few_queries<double>(queries) : kernels::has_few_queries<float>(queries);
  if (few && !train) return true;  // the gradient has no kernel for few queries
  if (queries < kMinLength || keys < kMinLength) return false;
  const bool is_fast = size <= kMaxSize && value_size <= kMaxSize;
  return is_fast || queries * keys >= kManyTimes * (queries + keys) * (size + value_size);
}

bool is_last_axis(const AttrValue& axis, int ndim) {
  const auto* number = std::get_if<int64_t>(&axis.value);
  return number && (*number == -1 || *number == ndim - 1);
}

// Scaled and masked scores of queries and keys.
struct Scores {
  double scale = 1;
  NodeEntry product;  // queries times keys
  std::optional<NodeEntry> mask;
  std::string mask_type = "none";
};

class Matcher {
 public:
  Matcher(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  bool find() {
    const bool plain = node_.op == &kBatchDot.op();
    if (plain && (bool_attribute(node_, "transpose_a", false) || bool_attribute(node_, "transpose_b", false)))
      return false;
    NodeEntry entry = node_.inputs[plain ? 0 : 1];
    const Node* reader = &node_;
    if (is_first_of(entry, kDropout)) {
      const Node& dropout = *entry.node;
      if (!only_reader(entry, reader) || graph_.is_used(dropout, 1) || !drops_in_training_only(dropout)) return false;
      if (graph_.train()) p = number_attribute(dropout, "p", 0);
      stream = random_stream(dropout);
      reader = &dropout;
      entry = dropout.inputs[0];
    }
    return is_first_of(entry, kSoftmax) && only_reader(entry, reader) && read_softmax(*entry.node) && fits();
  }

  double p = 0;  // probability of Dropout
  std::optional<uint64_t> stream;
  Scores scores;

 private:
  bool only_reader(const NodeEntry& entry, const Node* reader) const { return graph_.only_reader(entry) == reader; }

  static bool drops_in_training_only(const Node& dropout) {
    return text_attribute(dropout, "mode") == "training" && attribute(dropout, "axes").str() == "()";
  }

  bool read_softmax(const Node& softmax) {
    const NodeEntry& data = softmax.inputs[0];
    if (!is_last_axis(attribute(softmax, "axis"), softmax.specs[0].shape.ndim())) return false;
    if (!(graph_.spec(data) == softmax.specs[0]) || !only_reader(data, &softmax)) return false;
    const double temperature = number_attribute(softmax, "temperature", 1);
    if (softmax.inputs.size() > 1) set_mask(softmax.inputs[1], "lengths");
    // The temperature divides the mask, too.
    return read_mask(data, temperature != 1) && (scores.scale /= temperature, true);
  }

  bool read_mask(const NodeEntry& entry, bool plain_only) {
    if (read_product(entry)) return true;
    const Node& node = *entry.node;
    if (node.is_variable() || scores.mask || plain_only) return false;
    if (is_first_of(entry, kAdd) || is_first_of(entry, kAddEqual)) {
      for (const size_t side : {0u, 1u}) {
        const NodeEntry &other = node.inputs[1 - side], &inner = node.inputs[side];
        if (!(graph_.spec(inner) == node.specs[0]) || !only_reader(inner, &node) || !read_product(inner)) continue;
        set_mask(other, "added");
        return true;
      }
    }
    if (is_first_of(entry, kWhere)) {
      const NodeEntry &condition = node.inputs[0], &inner = node.inputs[1], &rest = node.inputs[2];
      const DType dtype = graph_.spec(condition).dtype;
      const bool bytes = dtype == DType::kBool || dtype == DType::kUInt8 || dtype == DType::kInt8;
      if (!bytes || !(graph_.spec(condition).shape == node.specs[0].shape) || !is_minus_infinity(rest)) return false;
      if (!only_reader(inner, &node) || !(graph_.spec(inner) == node.specs[0]) || !read_product(inner)) return false;
      set_mask(condition, "kept");
      return true;
    }
    return false;
  }

  void set_mask(const NodeEntry& mask, const char* type) {
    scores.mask = mask;
    scores.mask_type = type;
  }

  static bool is_minus_infinity(const NodeEntry& entry) {
    const Node& node = *entry.node;
    return !node.is_variable() && node.op->fills_with &&
           node.op->fills_with(node.params->data()) == -std::numeric_limits<double>::infinity();
  }

  bool read_product(NodeEntry entry) {
    double scale = 1;
    while (is_first_of(entry, kMultiply) || is_first_of(entry, kDivide)) {
      const Node& node = *entry.node;
      const double scalar = number_attribute(node, "scalar", 0);
      scale = node.op == &kMultiply.op() ? scale * scalar : scale / scalar;
      if (!(graph_.spec(node.inputs[0]) == node.specs[0]) || !only_reader(node.inputs[0], &node)) return false;
      entry = node.inputs[0];
    }
    const bool is_product = node_.op == &kBatchDot.op()     ? is_first_of(entry, kBatchDot)
                            : node_.op == &kSelfValues.op() ? is_first_of(entry, kSelfScores)
                                                            : is_first_of(entry, kCrossScores);
    if (!is_product || !(scale - scale == 0)) return false;
    scores.product = entry;
    scores.scale = scale;
    return true;
  }

  // True if the operands belong to one attention and have sizes for which fusing pays.
  bool fits() const {
    const Node& product = *scores.product.node;
    const TensorSpec& weights = product.specs[0];
    if (!is_floating(weights.dtype)) return false;
    const bool plain = node_.op == &kBatchDot.op();
    if (plain ? bool_attribute(product, "transpose_a", false) : !has_operands_of(product)) return false;
    const Shape& values = node_.specs[0].shape;
    const Shape& queries = plain ? graph_.spec(product.inputs[0]).shape : values;
    return ask_sizes({weights.shape, queries, values},
                     [dtype = weights.dtype, train = graph_.train(), parts = plain ? 1 : heads()](auto shapes) {
                       return fusing_pays(shapes[0], last(shapes[1]) / parts, last(shapes[2]) / parts, dtype, train);
                     });
  }

  bool has_operands_of(const Node& product) const {
    return number_attribute(product, "heads", 0) == number_attribute(node_, "heads", 0) &&
           node_.inputs[0] == product.inputs[node_.op == &kSelfValues.op() ? 0 : 1];
  }

  int64_t heads() const { return integer_attribute(node_, "heads", 1); }

  const Graph& graph_;
  const Node& node_;
};

// Returns `entry` with its last two axes swapped, as one transpose at most of the array under it.
NodeEntry with_last_axes_swapped(Graph& graph, const NodeEntry& entry) {
  const Node& node = *entry.node;
  const int ndim = graph.spec(entry).shape.ndim();
  Tuple axes = Tuple::scalar();
  for (int i = 0; i < ndim; ++i) axes.push_back(i);
  NodeEntry source = entry;
  if (is_first_of(entry, kTranspose)) {
    source = node.inputs[0];
    const AttrValue given = attribute(node, "axes");
    const auto* list = std::get_if<AttrValue::List>(&given.value);
    for (int i = 0; i < ndim; ++i) {
      int64_t axis = ndim - 1 - i;
      if (list && !list->empty()) axis = std::get<int64_t>((*list)[static_cast<size_t>(i)].value);
      axes[i] = axis < 0 ? axis + ndim : axis;
    }
  } else if (is_first_of(entry, kSwapAxis)) {
    source = node.inputs[0];
    const auto axis = [&](const char* name) {
      const int number = static_cast<int>(integer_attribute(node, name, 0));
      return number < 0 ? number + ndim : number;
    };
    std::swap(axes[axis("dim1")], axes[axis("dim2")]);
  }
  std::swap(axes[ndim - 2], axes[ndim - 1]);
  bool same = true;
  for (int i = 0; i < ndim; ++i) same = same && axes[i] == i;
  return same ? source : emit(graph, kTranspose, {source}, {{"axes", axes.str()}}, &node);
}

}  // namespace

Replacement attention(Graph& graph, Node& node) {
  Matcher matcher(graph, node);
  if (!matcher.find()) return no_change();
  const Scores& scores = matcher.scores;
  const Node& product = *scores.product.node;
  std::vector<NodeEntry> inputs;
  int64_t heads = 1, parts = 0;
  double scale = scores.scale;
  if (node.op == &kBatchDot.op()) {
    const bool transposed = bool_attribute(product, "transpose_b", false);
    inputs = {product.inputs[0], transposed ? product.inputs[1] : with_last_axes_swapped(graph, product.inputs[1]),
              node.inputs[1]};
  } else {
    inputs = product.inputs;
    parts = inputs.size() == 1 ? 3 : 2;
    heads = integer_attribute(node, "heads", 1);
    const int64_t width = graph.spec(inputs[0]).shape[2] / (parts == 3 ? 3 : 1) / heads;
    scale /= std::sqrt(static_cast<double>(std::max<int64_t>(width, 1)));
  }
  if (scores.mask) inputs.push_back(*scores.mask);
  const Op& op = matcher.p > 0 ? kFusedDropout.op() : kFused.op();
  const NodePtr fused = graph.add(
      op,
      make_params(
          op, nullptr,
          {{"scale", scale}, {"mask_type", scores.mask_type}, {"heads", heads}, {"parts", parts}, {"p", matcher.p}}),
      std::move(inputs), &node);
  if (matcher.p > 0 && matcher.stream) set_random_stream(*fused, *matcher.stream);  // same draws as Dropout
  return replace_with({fused, 0});
}

}  // namespace hybridnet::passes
