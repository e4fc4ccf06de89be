"""Cases of ONNX's backend tests that do not give the results of the standard, and why: patterns of whole names."""

# Refused with an error that names the node or the input.
REASONS: dict[str, str] = {
    "test_bitcast_(2d_|scalar_)?float.*": "no operator reads the bits of floats as integers",
    "test_image_decoder_.*": "images are decoded outside of graphs, by mx.image.imdecode",
    "test_sequence_map_add_1_sequence_1_tensor(_expanded)?": "the file declares one element for x1, the data have ten",
}

# Other results, with the tolerance within which they agree all the same; None: shapes and dtypes alone.
DIFFERS: dict[str, tuple[str, float | None]] = {
    "test_bernoulli.*": ("random numbers: the expected ones are those of NumPy's generator", None),
    "test_training_dropout(_default)?(_mask)?": ("random numbers: the expected ones are those of NumPy", None),
    "test_dft_inverse(_opset19)?": ("the expected zeros hold rounding errors of 2e-7; the tolerance is 1e-7", 1e-5),
    "test_attention_4d_causal_fp16_expanded": ("sums of float16 in another order: one unit in the last place", 1e-3),
}
