"""The option --ctx of the examples: the device of new arrays, and so of everything that is made of them."""

import argparse

import hybridnet as mx


def parse_args(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parses the command line with --ctx, and makes the device that it names the default of this thread."""
    parser.add_argument("--ctx", type=mx.Context.from_str, default="cpu", help="cpu, gpu or 'gpu(1)' (default: cpu)")
    args = parser.parse_args()
    mx.Context.default_ctx = args.ctx
    return args
