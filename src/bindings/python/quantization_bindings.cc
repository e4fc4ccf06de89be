// Functions on graphs for mx.contrib.quantization.
#include "casters.h"
#include "passes/quantize/quantize.h"

namespace hybridnet::python {

void bind_quantization(py::module_& m) {
  m.def(
      "fold_batch_norms",
      [](const Symbol& symbol, const std::set<std::string>& except) {
        passes::NewValues folded = passes::fold_batch_norms(symbol, except);
        return py::make_tuple(folded.symbol, folded.values);
      },
      "The graph without batch norms behind layers, and [(parameter, graph of its new value)].");
  m.def(
      "quantize_symbol",
      [](const Symbol& symbol, const std::set<std::string>& excluded_nodes, const std::set<std::string>& excluded_ops,
         const std::set<std::string>& parameters, bool always_signed, bool smart, bool ranges_follow) {
        const passes::QuantizedSymbol made =
            passes::quantize(symbol, {.excluded_nodes = excluded_nodes,
                                      .excluded_ops = excluded_ops,
                                      .parameters = parameters,
                                      .always_signed = always_signed,
                                      .mode = smart ? passes::QuantizeMode::kSmart : passes::QuantizeMode::kFull,
                                      .ranges_follow = ranges_follow});
        return py::make_tuple(made.symbol, made.entries);
      },
      "The graph for bytes, and the entries of the given graph whose ranges it should know.", py::kw_only(),
      py::arg("symbol"), py::arg("excluded_nodes"), py::arg("excluded_ops"), py::arg("parameters"),
      py::arg("always_signed"), py::arg("smart"), py::arg("ranges_follow"));
  m.def(
      "quantize_weights",
      [](const Symbol& symbol, const std::set<std::string>& excluded_nodes, const std::set<std::string>& excluded_ops,
         const std::set<std::string>& parameters, bool rounds_data) {
        const passes::WeightQuantizedSymbol made = passes::quantize_weights(
            symbol, {.excluded_nodes = excluded_nodes, .excluded_ops = excluded_ops, .parameters = parameters},
            rounds_data);
        return py::make_tuple(made.symbol, made.weights);
      },
      "The graph whose layers of floats read weights of bytes, and the names of these weights.", py::kw_only(),
      py::arg("symbol"), py::arg("excluded_nodes"), py::arg("excluded_ops"), py::arg("parameters"),
      py::arg("rounds_data"));
  m.def(
      "set_quantized_ranges",
      [](const Symbol& symbol, const passes::Ranges& ranges) { return passes::set_ranges(symbol, ranges); },
      "The graph that quantize_symbol() made, for these ranges (least, largest) of entries.");
  m.def("weights_beside_unsigned_data", &passes::weights_beside_unsigned_data,
        "Quantized weights whose ranges must be smaller by 127 / 255.");
}

}  // namespace hybridnet::python
