#pragma once

#include "hybridnet/declare.h"

namespace hybridnet::ops {

// The traits that all control-flow operators share: a variable number of inputs, bodies, and execution in graphs only.
template <typename P>
OpBuilder<P> declare_control(OpRegistry& ops, std::string name, std::vector<std::string> bodies) {
  OpBuilder<P> builder = ops.declare<P>(name);
  builder.op().subgraph_names = std::move(bodies);
  builder
      .variadic_input("data", "num_args",
                      "initial values, data and captured values, in the order that the attributes define")
      .output("out")
      .infer([name](const P&, InferContext&) {
        throw Error(ErrorKind::kError, {.op = name, .message = "the operator is inferred together with its bodies"});
      })
      .link(
          [name](const P&, const LinkContext&) -> Ref<Kernel> {
            throw UnsupportedError({.op = name,
                                    .message = "the operator runs in graphs only",
                                    .fix = "call mx.contrib.foreach, while_loop or cond"});
          },
          kAllDTypes)
      .gradient([name](const P&, const GradientContext&) -> Values {
        throw UnsupportedError(
            {.op = name, .message = "no gradient can be made here: it needs the bodies of the node"});
      })
      .internal();
  return builder;
}

}  // namespace hybridnet::ops
