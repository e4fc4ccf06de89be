// Written by tools/gen_cpp_frontend.py from the operator registry; `tools/dev gen` writes it again.
// The operators of mx.nd as functions, with parameters by name:
//
//   Array y = nd::FullyConnected(x, weight, bias, {.num_hidden = 10});
//   nd::sgd_update(weight, gradient, {.lr = 0.1}, into(weight));
//
// The names are those of mx.nd; _linalg_, _random_, _sample_, _image_ and _contrib_ are namespaces, like in Python. The
// operators of mx.nd._internal are in nd::internal, without the leading underscore. Code that omits a parameter without
// a default does not compile. Operators of mx.np are called by name: invoke("_npi_...", ...).
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "hybridnet/cpp/array.h"
#include "hybridnet/cpp/parameters.h"

// clang-format off
namespace hybridnet::cpp::nd::linalg {

// The determinant of every matrix. The gradient of a singular matrix is zero.
inline Array det(const Array& A, const Into& out = {}) {
  return invoke("_linalg_det", {A}, {}, out);
}

struct LinalgExtractdiagParams {
  int64_t offset = 0;  // Index of the diagonal: positive above the main one, negative below.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "offset", this->offset, int64_t(0));
    return given;
  }
};
// A diagonal of every matrix.
inline Array extractdiag(const Array& A, const LinalgExtractdiagParams& p = {}, const Into& out = {}) {
  return invoke("_linalg_extractdiag", {A}, p.attributes(), out);
}

struct LinalgExtracttrianParams {
  // The diagonal that bounds the triangle: positive: upper triangles from above the main diagonal, negative: lower
  // ones.
  int64_t offset = 0;
  bool lower = true;  // Whether the triangle is the lower one, if offset is 0.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "offset", this->offset, int64_t(0));
    detail::add(given, "lower", this->lower, bool(true));
    return given;
  }
};
// A triangle of every matrix, row by row.
inline Array extracttrian(const Array& A, const LinalgExtracttrianParams& p = {}, const Into& out = {}) {
  return invoke("_linalg_extracttrian", {A}, p.attributes(), out);
}

// LQ factorization: A = L Q with lower triangular L and orthonormal rows of Q. Gradients need matrices of full rank.
inline Outputs gelqf(const Array& A, const Into& out = {}) {
  return invoke("_linalg_gelqf", {A}, {}, out);
}

struct LinalgGemmParams {
  bool transpose_a = false;  // Whether to transpose the matrices of A.
  bool transpose_b = false;  // Whether to transpose the matrices of B.
  double alpha = 1.0;  // Factor of the product.
  double beta = 1.0;  // Factor of C.
  int64_t axis = -2;  // Axis of the matrix rows; the columns are the last axis.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "transpose_a", this->transpose_a, bool(false));
    detail::add(given, "transpose_b", this->transpose_b, bool(false));
    detail::add(given, "alpha", this->alpha, double(1.0));
    detail::add(given, "beta", this->beta, double(1.0));
    detail::add(given, "axis", this->axis, int64_t(-2));
    return given;
  }
};
// Matrix products of two stacks of matrices plus a third stack: alpha * op(A) op(B) + beta * C.
inline Array gemm(const Array& A, const Array& B, const Array& C, const LinalgGemmParams& p = {}, const Into& out = {})
    {
  return invoke("_linalg_gemm", {A, B, C}, p.attributes(), out);
}

struct LinalgGemm2Params {
  bool transpose_a = false;  // Whether to transpose the matrices of A.
  bool transpose_b = false;  // Whether to transpose the matrices of B.
  double alpha = 1.0;  // Factor of the product.
  int64_t axis = -2;  // Axis of the matrix rows; the columns are the last axis.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "transpose_a", this->transpose_a, bool(false));
    detail::add(given, "transpose_b", this->transpose_b, bool(false));
    detail::add(given, "alpha", this->alpha, double(1.0));
    detail::add(given, "axis", this->axis, int64_t(-2));
    return given;
  }
};
// Matrix products of two stacks of matrices: alpha * op(A) op(B).
inline Array gemm2(const Array& A, const Array& B, const LinalgGemm2Params& p = {}, const Into& out = {}) {
  return invoke("_linalg_gemm2", {A, B}, p.attributes(), out);
}

// The inverse of every matrix. Raises ValueError for a singular one.
inline Array inverse(const Array& A, const Into& out = {}) {
  return invoke("_linalg_inverse", {A}, {}, out);
}

struct LinalgMakediagParams {
  int64_t offset = 0;  // Index of the diagonal: positive above the main one, negative below.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "offset", this->offset, int64_t(0));
    return given;
  }
};
// Matrices that are zero except on one diagonal.
inline Array makediag(const Array& A, const LinalgMakediagParams& p = {}, const Into& out = {}) {
  return invoke("_linalg_makediag", {A}, p.attributes(), out);
}

struct LinalgMaketrianParams {
  // The diagonal that bounds the triangle: positive: upper triangles from above the main diagonal, negative: lower
  // ones.
  int64_t offset = 0;
  bool lower = true;  // Whether the triangle is the lower one, if offset is 0.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "offset", this->offset, int64_t(0));
    detail::add(given, "lower", this->lower, bool(true));
    return given;
  }
};
// Matrices that are zero but for one triangle, given row by row.
inline Array maketrian(const Array& A, const LinalgMaketrianParams& p = {}, const Into& out = {}) {
  return invoke("_linalg_maketrian", {A}, p.attributes(), out);
}

struct LinalgPotrfParams {
  // Lower triangular factors L with L L^T, or upper triangular ones U with U^T U. The other triangle is not read.
  bool lower = true;
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lower", this->lower, bool(true));
    return given;
  }
};
// Cholesky factors: the lower triangular L with A = L L^T. Only the lower triangle of A is read; its gradient is
// symmetric.
inline Array potrf(const Array& A, const LinalgPotrfParams& p = {}, const Into& out = {}) {
  return invoke("_linalg_potrf", {A}, p.attributes(), out);
}

struct LinalgPotriParams {
  // Lower triangular factors L with L L^T, or upper triangular ones U with U^T U. The other triangle is not read.
  bool lower = true;
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lower", this->lower, bool(true));
    return given;
  }
};
// The inverse of L L^T for a lower triangular L, for example the output of _linalg_potrf.
inline Array potri(const Array& A, const LinalgPotriParams& p = {}, const Into& out = {}) {
  return invoke("_linalg_potri", {A}, p.attributes(), out);
}

// The sign and the logarithm of the absolute value of every determinant: 0 and -inf for a singular matrix.
inline Outputs slogdet(const Array& A, const Into& out = {}) {
  return invoke("_linalg_slogdet", {A}, {}, out);
}

// The sum of the logarithms of the diagonal of every matrix.
inline Array sumlogdiag(const Array& A, const Into& out = {}) {
  return invoke("_linalg_sumlogdiag", {A}, {}, out);
}

// Eigenvectors U, as rows, and eigenvalues L, rising, of symmetric matrices: U A = diag(L) U. Only the lower triangle
// is read. Gradients need eigenvalues that differ.
inline Outputs syevd(const Array& A, const Into& out = {}) {
  return invoke("_linalg_syevd", {A}, {}, out);
}

struct LinalgSyrkParams {
  bool transpose = false;  // Whether to compute A^T A instead of A A^T.
  double alpha = 1.0;  // Factor of the product.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "transpose", this->transpose, bool(false));
    detail::add(given, "alpha", this->alpha, double(1.0));
    return given;
  }
};
// alpha A A^T, or alpha A^T A, of every matrix.
inline Array syrk(const Array& A, const LinalgSyrkParams& p = {}, const Into& out = {}) {
  return invoke("_linalg_syrk", {A}, p.attributes(), out);
}

struct LinalgTrmmParams {
  bool transpose = false;  // Whether to transpose the triangular matrices.
  bool rightside = false;  // Whether the triangular matrix is on the right.
  bool lower = true;  // Whether the lower triangle is used, else the upper one; the other triangle is not read.
  double alpha = 1.0;  // Factor of the result.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "transpose", this->transpose, bool(false));
    detail::add(given, "rightside", this->rightside, bool(false));
    detail::add(given, "lower", this->lower, bool(true));
    detail::add(given, "alpha", this->alpha, double(1.0));
    return given;
  }
};
// alpha op(A) B, or with rightside alpha B op(A), for triangular A.
inline Array trmm(const Array& A, const Array& B, const LinalgTrmmParams& p = {}, const Into& out = {}) {
  return invoke("_linalg_trmm", {A, B}, p.attributes(), out);
}

struct LinalgTrsmParams {
  bool transpose = false;  // Whether to transpose the triangular matrices.
  bool rightside = false;  // Whether the triangular matrix is on the right.
  bool lower = true;  // Whether the lower triangle is used, else the upper one; the other triangle is not read.
  double alpha = 1.0;  // Factor of the result.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "transpose", this->transpose, bool(false));
    detail::add(given, "rightside", this->rightside, bool(false));
    detail::add(given, "lower", this->lower, bool(true));
    detail::add(given, "alpha", this->alpha, double(1.0));
    return given;
  }
};
// Solves op(A) X = alpha B, or with rightside X op(A) = alpha B, for X; A is triangular.
inline Array trsm(const Array& A, const Array& B, const LinalgTrsmParams& p = {}, const Into& out = {}) {
  return invoke("_linalg_trsm", {A, B}, p.attributes(), out);
}

}  // namespace hybridnet::cpp::nd::linalg
namespace hybridnet::cpp::nd::random {

struct RandomExponentialParams {
  double lam = 1.0;  // Rate, positive: one over the mean.
  OptionalInts shape = std::nullopt;  // Shape of the output; None: the shape of out, else one number.
  std::optional<HnDType> dtype = std::nullopt;  // float16, float32, float64 or bfloat16; None: float32.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lam", this->lam, double(1.0));
    detail::add(given, "shape", this->shape, OptionalInts(std::nullopt));
    detail::add(given, "dtype", this->dtype, std::optional<HnDType>(std::nullopt));
    return given;
  }
};
// Exponentially distributed numbers.
inline Array exponential(const RandomExponentialParams& p = {}, const Into& out = {}) {
  return invoke("_random_exponential", {}, p.attributes(), out);
}

struct RandomExponentialLikeParams {
  double lam = 1.0;  // Rate, positive: one over the mean.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lam", this->lam, double(1.0));
    return given;
  }
};
// Exponentially distributed numbers. One per element of data.
inline Array exponential_like(const Array& data, const RandomExponentialLikeParams& p = {}, const Into& out = {}) {
  return invoke("_random_exponential_like", {data}, p.attributes(), out);
}

struct RandomGammaParams {
  double alpha = 1.0;  // Shape, positive.
  double beta = 1.0;  // Scale, positive.
  OptionalInts shape = std::nullopt;  // Shape of the output; None: the shape of out, else one number.
  std::optional<HnDType> dtype = std::nullopt;  // float16, float32, float64 or bfloat16; None: float32.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "alpha", this->alpha, double(1.0));
    detail::add(given, "beta", this->beta, double(1.0));
    detail::add(given, "shape", this->shape, OptionalInts(std::nullopt));
    detail::add(given, "dtype", this->dtype, std::optional<HnDType>(std::nullopt));
    return given;
  }
};
// Gamma distributed numbers.
inline Array gamma(const RandomGammaParams& p = {}, const Into& out = {}) {
  return invoke("_random_gamma", {}, p.attributes(), out);
}

struct RandomGammaLikeParams {
  double alpha = 1.0;  // Shape, positive.
  double beta = 1.0;  // Scale, positive.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "alpha", this->alpha, double(1.0));
    detail::add(given, "beta", this->beta, double(1.0));
    return given;
  }
};
// Gamma distributed numbers. One per element of data.
inline Array gamma_like(const Array& data, const RandomGammaLikeParams& p = {}, const Into& out = {}) {
  return invoke("_random_gamma_like", {data}, p.attributes(), out);
}

struct RandomGeneralizedNegativeBinomialParams {
  double mu = 1.0;  // Mean, not negative.
  double alpha = 1.0;  // Dispersion, not negative; 0 gives Poisson.
  OptionalInts shape = std::nullopt;  // Shape of the output; None: the shape of out, else one number.
  std::optional<HnDType> dtype = std::nullopt;  // float16, float32, float64 or bfloat16; None: float32.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "mu", this->mu, double(1.0));
    detail::add(given, "alpha", this->alpha, double(1.0));
    detail::add(given, "shape", this->shape, OptionalInts(std::nullopt));
    detail::add(given, "dtype", this->dtype, std::optional<HnDType>(std::nullopt));
    return given;
  }
};
// Negative binomial integers by mean and dispersion, as floating values.
inline Array generalized_negative_binomial(const RandomGeneralizedNegativeBinomialParams& p = {}, const Into& out = {})
    {
  return invoke("_random_generalized_negative_binomial", {}, p.attributes(), out);
}

struct RandomGeneralizedNegativeBinomialLikeParams {
  double mu = 1.0;  // Mean, not negative.
  double alpha = 1.0;  // Dispersion, not negative; 0 gives Poisson.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "mu", this->mu, double(1.0));
    detail::add(given, "alpha", this->alpha, double(1.0));
    return given;
  }
};
// Negative binomial integers by mean and dispersion, as floating values. One per element of data.
inline Array generalized_negative_binomial_like(const Array& data, const RandomGeneralizedNegativeBinomialLikeParams& p
    = {}, const Into& out = {}) {
  return invoke("_random_generalized_negative_binomial_like", {data}, p.attributes(), out);
}

struct RandomNegativeBinomialParams {
  double k = 1.0;  // Number of successes, not negative.
  double p_ = 1.0;  // Probability of a success, in (0, 1].
  OptionalInts shape = std::nullopt;  // Shape of the output; None: the shape of out, else one number.
  std::optional<HnDType> dtype = std::nullopt;  // float16, float32, float64 or bfloat16; None: float32.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "k", this->k, double(1.0));
    detail::add(given, "p", this->p_, double(1.0));
    detail::add(given, "shape", this->shape, OptionalInts(std::nullopt));
    detail::add(given, "dtype", this->dtype, std::optional<HnDType>(std::nullopt));
    return given;
  }
};
// Number of failures before k successes of probability p, as floating values.
inline Array negative_binomial(const RandomNegativeBinomialParams& p = {}, const Into& out = {}) {
  return invoke("_random_negative_binomial", {}, p.attributes(), out);
}

struct RandomNegativeBinomialLikeParams {
  double k = 1.0;  // Number of successes, not negative.
  double p_ = 1.0;  // Probability of a success, in (0, 1].
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "k", this->k, double(1.0));
    detail::add(given, "p", this->p_, double(1.0));
    return given;
  }
};
// Number of failures before k successes of probability p, as floating values. One per element of data.
inline Array negative_binomial_like(const Array& data, const RandomNegativeBinomialLikeParams& p = {}, const Into& out =
    {}) {
  return invoke("_random_negative_binomial_like", {data}, p.attributes(), out);
}

struct RandomNormalParams {
  double loc = 0.0;  // Mean.
  double scale = 1.0;  // Standard deviation, not negative.
  OptionalInts shape = std::nullopt;  // Shape of the output; None: the shape of out, else one number.
  std::optional<HnDType> dtype = std::nullopt;  // float16, float32, float64 or bfloat16; None: float32.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "loc", this->loc, double(0.0));
    detail::add(given, "scale", this->scale, double(1.0));
    detail::add(given, "shape", this->shape, OptionalInts(std::nullopt));
    detail::add(given, "dtype", this->dtype, std::optional<HnDType>(std::nullopt));
    return given;
  }
};
// Normally distributed numbers.
inline Array normal(const RandomNormalParams& p = {}, const Into& out = {}) {
  return invoke("_random_normal", {}, p.attributes(), out);
}

struct RandomNormalLikeParams {
  double loc = 0.0;  // Mean.
  double scale = 1.0;  // Standard deviation, not negative.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "loc", this->loc, double(0.0));
    detail::add(given, "scale", this->scale, double(1.0));
    return given;
  }
};
// Normally distributed numbers. One per element of data.
inline Array normal_like(const Array& data, const RandomNormalLikeParams& p = {}, const Into& out = {}) {
  return invoke("_random_normal_like", {data}, p.attributes(), out);
}

struct RandomPdfDirichletParams {
  bool is_log = false;  // Whether to return logarithms of densities.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "is_log", this->is_log, bool(false));
    return given;
  }
};
// Density of Dirichlet distributions with concentrations alpha.
inline Array pdf_dirichlet(const Array& sample, const Array& alpha, const RandomPdfDirichletParams& p = {}, const Into&
    out = {}) {
  return invoke("_random_pdf_dirichlet", {sample, alpha}, p.attributes(), out);
}

struct RandomPdfExponentialParams {
  bool is_log = false;  // Whether to return logarithms of densities.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "is_log", this->is_log, bool(false));
    return given;
  }
};
// Density of exponential distributions with rate lam.
inline Array pdf_exponential(const Array& sample, const Array& lam, const RandomPdfExponentialParams& p = {}, const
    Into& out = {}) {
  return invoke("_random_pdf_exponential", {sample, lam}, p.attributes(), out);
}

struct RandomPdfGammaParams {
  bool is_log = false;  // Whether to return logarithms of densities.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "is_log", this->is_log, bool(false));
    return given;
  }
};
// Density of gamma distributions with shape alpha and rate beta.
inline Array pdf_gamma(const Array& sample, const Array& alpha, const Array& beta, const RandomPdfGammaParams& p = {},
    const Into& out = {}) {
  return invoke("_random_pdf_gamma", {sample, alpha, beta}, p.attributes(), out);
}

struct RandomPdfGeneralizedNegativeBinomialParams {
  bool is_log = false;  // Whether to return logarithms of densities.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "is_log", this->is_log, bool(false));
    return given;
  }
};
// Probabilities of negative binomial distributions with mean mu and dispersion alpha.
inline Array pdf_generalized_negative_binomial(const Array& sample, const Array& mu, const Array& alpha, const
    RandomPdfGeneralizedNegativeBinomialParams& p = {}, const Into& out = {}) {
  return invoke("_random_pdf_generalized_negative_binomial", {sample, mu, alpha}, p.attributes(), out);
}

struct RandomPdfNegativeBinomialParams {
  bool is_log = false;  // Whether to return logarithms of densities.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "is_log", this->is_log, bool(false));
    return given;
  }
};
// Probabilities of negative binomial distributions with k and the probability p of failure.
inline Array pdf_negative_binomial(const Array& sample, const Array& k, const Array& p_, const
    RandomPdfNegativeBinomialParams& p = {}, const Into& out = {}) {
  return invoke("_random_pdf_negative_binomial", {sample, k, p_}, p.attributes(), out);
}

struct RandomPdfNormalParams {
  bool is_log = false;  // Whether to return logarithms of densities.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "is_log", this->is_log, bool(false));
    return given;
  }
};
// Density of normal distributions.
inline Array pdf_normal(const Array& sample, const Array& mu, const Array& sigma, const RandomPdfNormalParams& p = {},
    const Into& out = {}) {
  return invoke("_random_pdf_normal", {sample, mu, sigma}, p.attributes(), out);
}

struct RandomPdfPoissonParams {
  bool is_log = false;  // Whether to return logarithms of densities.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "is_log", this->is_log, bool(false));
    return given;
  }
};
// Probabilities of Poisson distributions with mean lam.
inline Array pdf_poisson(const Array& sample, const Array& lam, const RandomPdfPoissonParams& p = {}, const Into& out =
    {}) {
  return invoke("_random_pdf_poisson", {sample, lam}, p.attributes(), out);
}

struct RandomPdfUniformParams {
  bool is_log = false;  // Whether to return logarithms of densities.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "is_log", this->is_log, bool(false));
    return given;
  }
};
// Density of uniform distributions between low and high.
inline Array pdf_uniform(const Array& sample, const Array& low, const Array& high, const RandomPdfUniformParams& p = {},
    const Into& out = {}) {
  return invoke("_random_pdf_uniform", {sample, low, high}, p.attributes(), out);
}

struct RandomPoissonParams {
  double lam = 1.0;  // Mean, not negative.
  OptionalInts shape = std::nullopt;  // Shape of the output; None: the shape of out, else one number.
  std::optional<HnDType> dtype = std::nullopt;  // float16, float32, float64 or bfloat16; None: float32.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lam", this->lam, double(1.0));
    detail::add(given, "shape", this->shape, OptionalInts(std::nullopt));
    detail::add(given, "dtype", this->dtype, std::optional<HnDType>(std::nullopt));
    return given;
  }
};
// Poisson distributed integers, as floating values.
inline Array poisson(const RandomPoissonParams& p = {}, const Into& out = {}) {
  return invoke("_random_poisson", {}, p.attributes(), out);
}

struct RandomPoissonLikeParams {
  double lam = 1.0;  // Mean, not negative.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lam", this->lam, double(1.0));
    return given;
  }
};
// Poisson distributed integers, as floating values. One per element of data.
inline Array poisson_like(const Array& data, const RandomPoissonLikeParams& p = {}, const Into& out = {}) {
  return invoke("_random_poisson_like", {data}, p.attributes(), out);
}

struct RandomRandintParams {
  Required<int64_t> low;  // Smallest number.
  Required<int64_t> high;  // One above the largest number.
  OptionalInts shape = std::nullopt;  // Shape of the output; None: the shape of out, else one number.
  std::optional<HnDType> dtype = std::nullopt;  // int32 or int64; None: int32.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "low", this->low);
    detail::add(given, "high", this->high);
    detail::add(given, "shape", this->shape, OptionalInts(std::nullopt));
    detail::add(given, "dtype", this->dtype, std::optional<HnDType>(std::nullopt));
    return given;
  }
};
// Uniformly distributed integers in [low, high).
inline Array randint(const RandomRandintParams& p, const Into& out = {}) {
  return invoke("_random_randint", {}, p.attributes(), out);
}

struct RandomUniformParams {
  double low = 0.0;  // Lower bound, inclusive.
  double high = 1.0;  // Upper bound, exclusive.
  OptionalInts shape = std::nullopt;  // Shape of the output; None: the shape of out, else one number.
  std::optional<HnDType> dtype = std::nullopt;  // float16, float32, float64 or bfloat16; None: float32.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "low", this->low, double(0.0));
    detail::add(given, "high", this->high, double(1.0));
    detail::add(given, "shape", this->shape, OptionalInts(std::nullopt));
    detail::add(given, "dtype", this->dtype, std::optional<HnDType>(std::nullopt));
    return given;
  }
};
// Uniformly distributed numbers in [low, high).
inline Array uniform(const RandomUniformParams& p = {}, const Into& out = {}) {
  return invoke("_random_uniform", {}, p.attributes(), out);
}

struct RandomUniformLikeParams {
  double low = 0.0;  // Lower bound, inclusive.
  double high = 1.0;  // Upper bound, exclusive.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "low", this->low, double(0.0));
    detail::add(given, "high", this->high, double(1.0));
    return given;
  }
};
// Uniformly distributed numbers in [low, high). One per element of data.
inline Array uniform_like(const Array& data, const RandomUniformLikeParams& p = {}, const Into& out = {}) {
  return invoke("_random_uniform_like", {data}, p.attributes(), out);
}

}  // namespace hybridnet::cpp::nd::random
namespace hybridnet::cpp::nd::sample {

struct SampleExponentialParams {
  std::vector<int64_t> shape = {};  // Shape drawn for every element of the parameters.
  std::optional<HnDType> dtype = std::nullopt;  // float16, float32, float64 or bfloat16; None: float32.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "shape", this->shape, std::vector<int64_t>({}));
    detail::add(given, "dtype", this->dtype, std::optional<HnDType>(std::nullopt));
    return given;
  }
};
// Exponentially distributed numbers. One or more per element of the parameters.
inline Array exponential(const Array& lam, const SampleExponentialParams& p = {}, const Into& out = {}) {
  return invoke("_sample_exponential", {lam}, p.attributes(), out);
}

struct SampleGammaParams {
  std::vector<int64_t> shape = {};  // Shape drawn for every element of the parameters.
  std::optional<HnDType> dtype = std::nullopt;  // float16, float32, float64 or bfloat16; None: float32.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "shape", this->shape, std::vector<int64_t>({}));
    detail::add(given, "dtype", this->dtype, std::optional<HnDType>(std::nullopt));
    return given;
  }
};
// Gamma distributed numbers. One or more per element of the parameters.
inline Array gamma(const Array& alpha, const Array& beta, const SampleGammaParams& p = {}, const Into& out = {}) {
  return invoke("_sample_gamma", {alpha, beta}, p.attributes(), out);
}

struct SampleGeneralizedNegativeBinomialParams {
  std::vector<int64_t> shape = {};  // Shape drawn for every element of the parameters.
  std::optional<HnDType> dtype = std::nullopt;  // float16, float32, float64 or bfloat16; None: float32.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "shape", this->shape, std::vector<int64_t>({}));
    detail::add(given, "dtype", this->dtype, std::optional<HnDType>(std::nullopt));
    return given;
  }
};
// Negative binomial integers by mean and dispersion, as floating values. One or more per element of the parameters.
inline Array generalized_negative_binomial(const Array& mu, const Array& alpha, const
    SampleGeneralizedNegativeBinomialParams& p = {}, const Into& out = {}) {
  return invoke("_sample_generalized_negative_binomial", {mu, alpha}, p.attributes(), out);
}

struct SampleMultinomialParams {
  std::vector<int64_t> shape = {};  // Shape drawn from every distribution.
  // Whether the logarithms of the outcomes' probabilities are a second output; its gradient flows to data.
  bool get_prob = false;
  HnDType dtype = HN_INT32;  // uint8, int32, float16, float32 or float64.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "shape", this->shape, std::vector<int64_t>({}));
    detail::add(given, "get_prob", this->get_prob, bool(false));
    detail::add(given, "dtype", this->dtype, HnDType(HN_INT32));
    return given;
  }
};
// Random outcomes of distributions over the last axis of data.
inline Outputs multinomial(const Array& data, const SampleMultinomialParams& p = {}, const Into& out = {}) {
  return invoke("_sample_multinomial", {data}, p.attributes(), out);
}

struct SampleNegativeBinomialParams {
  std::vector<int64_t> shape = {};  // Shape drawn for every element of the parameters.
  std::optional<HnDType> dtype = std::nullopt;  // float16, float32, float64 or bfloat16; None: float32.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "shape", this->shape, std::vector<int64_t>({}));
    detail::add(given, "dtype", this->dtype, std::optional<HnDType>(std::nullopt));
    return given;
  }
};
// Number of failures before k successes of probability p, as floating values. One or more per element of the
// parameters.
inline Array negative_binomial(const Array& k, const Array& p_, const SampleNegativeBinomialParams& p = {}, const Into&
    out = {}) {
  return invoke("_sample_negative_binomial", {k, p_}, p.attributes(), out);
}

struct SampleNormalParams {
  std::vector<int64_t> shape = {};  // Shape drawn for every element of the parameters.
  std::optional<HnDType> dtype = std::nullopt;  // float16, float32, float64 or bfloat16; None: float32.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "shape", this->shape, std::vector<int64_t>({}));
    detail::add(given, "dtype", this->dtype, std::optional<HnDType>(std::nullopt));
    return given;
  }
};
// Normally distributed numbers. One or more per element of the parameters.
inline Array normal(const Array& mu, const Array& sigma, const SampleNormalParams& p = {}, const Into& out = {}) {
  return invoke("_sample_normal", {mu, sigma}, p.attributes(), out);
}

struct SamplePoissonParams {
  std::vector<int64_t> shape = {};  // Shape drawn for every element of the parameters.
  std::optional<HnDType> dtype = std::nullopt;  // float16, float32, float64 or bfloat16; None: float32.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "shape", this->shape, std::vector<int64_t>({}));
    detail::add(given, "dtype", this->dtype, std::optional<HnDType>(std::nullopt));
    return given;
  }
};
// Poisson distributed integers, as floating values. One or more per element of the parameters.
inline Array poisson(const Array& lam, const SamplePoissonParams& p = {}, const Into& out = {}) {
  return invoke("_sample_poisson", {lam}, p.attributes(), out);
}

struct SampleUniformParams {
  std::vector<int64_t> shape = {};  // Shape drawn for every element of the parameters.
  std::optional<HnDType> dtype = std::nullopt;  // float16, float32, float64 or bfloat16; None: float32.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "shape", this->shape, std::vector<int64_t>({}));
    detail::add(given, "dtype", this->dtype, std::optional<HnDType>(std::nullopt));
    return given;
  }
};
// Uniformly distributed numbers in [low, high). One or more per element of the parameters.
inline Array uniform(const Array& low, const Array& high, const SampleUniformParams& p = {}, const Into& out = {}) {
  return invoke("_sample_uniform", {low, high}, p.attributes(), out);
}

struct SampleUniqueZipfianParams {
  Required<int64_t> range_max;  // Number of classes.
  OptionalInts shape = std::nullopt;  // (rows, classes drawn per row); None: the shape of out.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "range_max", this->range_max);
    detail::add(given, "shape", this->shape, OptionalInts(std::nullopt));
    return given;
  }
};
// Classes drawn without replacement, the first classes most often: class k is round(exp(u log(range_max))) - 1 for
// uniform u.
inline Outputs unique_zipfian(const SampleUniqueZipfianParams& p, const Into& out = {}) {
  return invoke("_sample_unique_zipfian", {}, p.attributes(), out);
}

}  // namespace hybridnet::cpp::nd::sample
namespace hybridnet::cpp::nd::image {

struct ImageAdjustLightingParams {
  Required<std::vector<double>> alpha;  // Amounts to add along the three principal components of colors.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "alpha", this->alpha);
    return given;
  }
};
// Adds amounts along the principal components of ImageNet's colors (Krizhevsky et al., NIPS 2012, section 4.1).
inline Array adjust_lighting(const Array& data, const ImageAdjustLightingParams& p, const Into& out = {}) {
  return invoke("_image_adjust_lighting", {data}, p.attributes(), out);
}

struct ImageCropParams {
  Required<int64_t> x;  // Left border of the rectangle.
  Required<int64_t> y;  // Upper border of the rectangle.
  Required<int64_t> width;  // Width of the rectangle.
  Required<int64_t> height;  // Height of the rectangle.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "x", this->x);
    detail::add(given, "y", this->y);
    detail::add(given, "width", this->width);
    detail::add(given, "height", this->height);
    return given;
  }
};
// The rectangle of an image that starts at (x, y).
inline Array crop(const Array& data, const ImageCropParams& p, const Into& out = {}) {
  return invoke("_image_crop", {data}, p.attributes(), out);
}

// Flips images: left becomes right.
inline Array flip_left_right(const Array& data, const Into& out = {}) {
  return invoke("_image_flip_left_right", {data}, {}, out);
}

// Flips images: top becomes bottom.
inline Array flip_top_bottom(const Array& data, const Into& out = {}) {
  return invoke("_image_flip_top_bottom", {data}, {}, out);
}

struct ImageNormalizeParams {
  std::vector<double> mean = {0.0, 0.0, 0.0, 0.0};  // Means of the channels, or one for all.
  std::vector<double> std = {1.0, 1.0, 1.0, 1.0};  // Standard deviations of the channels, or one for all.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "mean", this->mean, std::vector<double>({0.0, 0.0, 0.0, 0.0}));
    detail::add(given, "std", this->std, std::vector<double>({1.0, 1.0, 1.0, 1.0}));
    return given;
  }
};
// (data - mean) / std, channel by channel.
inline Array normalize(const Array& data, const ImageNormalizeParams& p = {}, const Into& out = {}) {
  return invoke("_image_normalize", {data}, p.attributes(), out);
}

struct ImageRandomBrightnessParams {
  Required<double> min_factor;  // Smallest factor drawn.
  Required<double> max_factor;  // Largest factor drawn.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "min_factor", this->min_factor);
    detail::add(given, "max_factor", this->max_factor);
    return given;
  }
};
// All values times a random factor between min_factor and max_factor.
inline Array random_brightness(const Array& data, const ImageRandomBrightnessParams& p, const Into& out = {}) {
  return invoke("_image_random_brightness", {data}, p.attributes(), out);
}

struct ImageRandomColorJitterParams {
  Required<double> brightness;  // The factor is drawn from 1 - brightness to 1 + brightness.
  Required<double> contrast;  // The factor is drawn from 1 - contrast to 1 + contrast.
  Required<double> saturation;  // The factor is drawn from 1 - saturation to 1 + saturation.
  Required<double> hue;  // The fraction of the color circle is drawn from -hue to hue.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "brightness", this->brightness);
    detail::add(given, "contrast", this->contrast);
    detail::add(given, "saturation", this->saturation);
    detail::add(given, "hue", this->hue);
    return given;
  }
};
// Changes brightness, contrast, saturation and hue by random amounts, in a random order.
inline Array random_color_jitter(const Array& data, const ImageRandomColorJitterParams& p, const Into& out = {}) {
  return invoke("_image_random_color_jitter", {data}, p.attributes(), out);
}

struct ImageRandomContrastParams {
  Required<double> min_factor;  // Smallest factor drawn.
  Required<double> max_factor;  // Largest factor drawn.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "min_factor", this->min_factor);
    detail::add(given, "max_factor", this->max_factor);
    return given;
  }
};
// Scales the distances of values from the image's mean luminance by a random factor.
inline Array random_contrast(const Array& data, const ImageRandomContrastParams& p, const Into& out = {}) {
  return invoke("_image_random_contrast", {data}, p.attributes(), out);
}

// Flips images, left becomes right, or not, with equal probability.
inline Array random_flip_left_right(const Array& data, const Into& out = {}) {
  return invoke("_image_random_flip_left_right", {data}, {}, out);
}

// Flips images, top becomes bottom, or not, with equal probability.
inline Array random_flip_top_bottom(const Array& data, const Into& out = {}) {
  return invoke("_image_random_flip_top_bottom", {data}, {}, out);
}

struct ImageRandomHueParams {
  Required<double> min_factor;  // Smallest factor drawn.
  Required<double> max_factor;  // Largest factor drawn.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "min_factor", this->min_factor);
    detail::add(given, "max_factor", this->max_factor);
    return given;
  }
};
// Rotates hues by a random fraction of the color circle.
inline Array random_hue(const Array& data, const ImageRandomHueParams& p, const Into& out = {}) {
  return invoke("_image_random_hue", {data}, p.attributes(), out);
}

struct ImageRandomLightingParams {
  double alpha_std = 0.05;  // Standard deviation of the amounts along the principal components of colors.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "alpha_std", this->alpha_std, double(0.05));
    return given;
  }
};
// _image_adjust_lighting with normally distributed amounts.
inline Array random_lighting(const Array& data, const ImageRandomLightingParams& p = {}, const Into& out = {}) {
  return invoke("_image_random_lighting", {data}, p.attributes(), out);
}

struct ImageRandomSaturationParams {
  Required<double> min_factor;  // Smallest factor drawn.
  Required<double> max_factor;  // Largest factor drawn.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "min_factor", this->min_factor);
    detail::add(given, "max_factor", this->max_factor);
    return given;
  }
};
// Scales the distances of values from their pixel's luminance by a random factor.
inline Array random_saturation(const Array& data, const ImageRandomSaturationParams& p, const Into& out = {}) {
  return invoke("_image_random_saturation", {data}, p.attributes(), out);
}

struct ImageResizeParams {
  std::vector<int64_t> size = {};  // (width, height), or one number for both.
  // Whether one number is the size of the shorter side; the other side keeps the aspect ratio.
  bool keep_ratio = false;
  int64_t interp = 1;  // 0: nearest, 1: bilinear, 2: bicubic, 3: area, 4: Lanczos over 8x8 pixels.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "size", this->size, std::vector<int64_t>({}));
    detail::add(given, "keep_ratio", this->keep_ratio, bool(false));
    detail::add(given, "interp", this->interp, int64_t(1));
    return given;
  }
};
// Images resized to another height and width.
inline Array resize(const Array& data, const ImageResizeParams& p = {}, const Into& out = {}) {
  return invoke("_image_resize", {data}, p.attributes(), out);
}

// Images with values in [0, 255] and channels last as tensors with values in [0, 1] and channels first.
inline Array to_tensor(const Array& data, const Into& out = {}) {
  return invoke("_image_to_tensor", {data}, {}, out);
}

}  // namespace hybridnet::cpp::nd::image
namespace hybridnet::cpp::nd::contrib {

struct ContribAdaptiveAvgPooling2DParams {
  std::vector<int64_t> output_size = {};  // (height, width), or one number for both; empty: 1.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "output_size", this->output_size, std::vector<int64_t>({}));
    return given;
  }
};
// Averages of windows that cover the image, output_size of them; element k of an axis averages elements floor(k size /
// n) to ceil((k + 1) size / n) - 1.
inline Array AdaptiveAvgPooling2D(const Array& data, const ContribAdaptiveAvgPooling2DParams& p = {}, const Into& out =
    {}) {
  return invoke("_contrib_AdaptiveAvgPooling2D", {data}, p.attributes(), out);
}

struct ContribBatchNormWithReLUParams {
  double eps = 0.0010000000474974513;  // Added to the variance.
  double momentum = 0.8999999761581421;  // Factor of the old moving statistics.
  bool fix_gamma = true;  // Whether gamma is treated as 1 and has no gradient.
  bool use_global_stats = false;  // Whether the moving statistics are used in training, too.
  bool output_mean_var = false;  // Whether mean and var are outputs, too.
  int64_t axis = 1;  // Axis of the channels.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "eps", this->eps, double(0.0010000000474974513));
    detail::add(given, "momentum", this->momentum, double(0.8999999761581421));
    detail::add(given, "fix_gamma", this->fix_gamma, bool(true));
    detail::add(given, "use_global_stats", this->use_global_stats, bool(false));
    detail::add(given, "output_mean_var", this->output_mean_var, bool(false));
    detail::add(given, "axis", this->axis, int64_t(1));
    return given;
  }
};
// BatchNorm followed by max(., 0).
inline Array BatchNormWithReLU(const Array& data, const Array& gamma, const Array& beta, const Array& moving_mean, const
    Array& moving_var, const ContribBatchNormWithReLUParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_BatchNormWithReLU", {data, gamma, beta, moving_mean, moving_var}, p.attributes(), out);
}

struct ContribBilinearResize2DParams {
  int64_t height = 1;  // Height of the output; mode size without scale_height.
  int64_t width = 1;  // Width of the output; mode size without scale_width.
  std::optional<double> scale_height = std::nullopt;  // Factor of the height; modes size and odd_scale.
  std::optional<double> scale_width = std::nullopt;  // Factor of the width; modes size and odd_scale.
  // Source of the new sizes. size: the parameters; like: the second input; odd_scale: the scaled size, (size - 1) *
  // scale + 1 for odd ones; to_even_down ... to_odd_up: the next even or odd size. One of: size, odd_scale, like,
  // to_even_down, to_even_up, to_odd_down, to_odd_up.
  std::string mode = "size";
  // Whether the centers of the corner pixels are aligned; otherwise the corners of the images are.
  bool align_corners = true;
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "height", this->height, int64_t(1));
    detail::add(given, "width", this->width, int64_t(1));
    detail::add(given, "scale_height", this->scale_height, std::optional<double>(std::nullopt));
    detail::add(given, "scale_width", this->scale_width, std::optional<double>(std::nullopt));
    detail::add(given, "mode", this->mode, std::string("size"));
    detail::add(given, "align_corners", this->align_corners, bool(true));
    return given;
  }
};
// Images resized to another height and width by bilinear interpolation.
inline Array BilinearResize2D(const Array& data, const ContribBilinearResize2DParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_BilinearResize2D", {data}, p.attributes(), out);
}
inline Array BilinearResize2D(const Array& data, const Array& like, const ContribBilinearResize2DParams& p = {}, const
    Into& out = {}) {
  return invoke("_contrib_BilinearResize2D", {data, like}, p.attributes(), out);
}

struct ContribDeformableConvolutionParams {
  Required<std::vector<int64_t>> kernel;  // Size of the kernel, (height, width).
  std::vector<int64_t> stride = {};  // Stride between outputs; () is (1, 1).
  std::vector<int64_t> dilate = {};  // Distance between kernel points; () is (1, 1).
  std::vector<int64_t> pad = {};  // Width of the padding around data; () is (0, 0).
  int64_t num_deformable_group = 1;  // Groups of channels that have offsets of their own.
  Required<int64_t> num_filter;  // Channels of the output.
  int64_t num_group = 1;  // Groups of channels that are convolved separately.
  bool no_bias = false;  // Whether there is no bias.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "kernel", this->kernel);
    detail::add(given, "stride", this->stride, std::vector<int64_t>({}));
    detail::add(given, "dilate", this->dilate, std::vector<int64_t>({}));
    detail::add(given, "pad", this->pad, std::vector<int64_t>({}));
    detail::add(given, "num_deformable_group", this->num_deformable_group, int64_t(1));
    detail::add(given, "num_filter", this->num_filter);
    detail::add(given, "num_group", this->num_group, int64_t(1));
    detail::add(given, "no_bias", this->no_bias, bool(false));
    return given;
  }
};
// Convolution whose kernel points are displaced by offsets, per output pixel; values between pixels by bilinear
// interpolation.
inline Array DeformableConvolution(const Array& data, const Array& offset, const Array& weight, const
    ContribDeformableConvolutionParams& p, const Into& out = {}) {
  return invoke("_contrib_DeformableConvolution", {data, offset, weight}, p.attributes(), out);
}
inline Array DeformableConvolution(const Array& data, const Array& offset, const Array& weight, const Array& bias, const
    ContribDeformableConvolutionParams& p, const Into& out = {}) {
  return invoke("_contrib_DeformableConvolution", {data, offset, weight, bias}, p.attributes(), out);
}

struct ContribDeformablePSROIPoolingParams {
  // Ratio of the size of data to the size of the image whose coordinates the regions use.
  Required<double> spatial_scale;
  Required<int64_t> output_dim;  // Channels of the output.
  Required<int64_t> group_size;  // Groups of channels along each side of a region.
  Required<int64_t> pooled_size;  // Bins along each side of a region.
  int64_t part_size = 0;  // Number of offsets along each side; 0: pooled_size.
  int64_t sample_per_part = 1;  // Points per bin along each side.
  double trans_std = 0.0;  // Factor of the offsets, which are fractions of a region.
  bool no_trans = false;  // Whether the bins are not displaced.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "spatial_scale", this->spatial_scale);
    detail::add(given, "output_dim", this->output_dim);
    detail::add(given, "group_size", this->group_size);
    detail::add(given, "pooled_size", this->pooled_size);
    detail::add(given, "part_size", this->part_size, int64_t(0));
    detail::add(given, "sample_per_part", this->sample_per_part, int64_t(1));
    detail::add(given, "trans_std", this->trans_std, double(0.0));
    detail::add(given, "no_trans", this->no_trans, bool(false));
    return given;
  }
};
// Means of points in the bins of regions, read by bilinear interpolation; offsets displace the bins.
inline Array DeformablePSROIPooling(const Array& data, const Array& rois, const ContribDeformablePSROIPoolingParams& p,
    const Into& out = {}) {
  return invoke("_contrib_DeformablePSROIPooling", {data, rois}, p.attributes(), out);
}
inline Array DeformablePSROIPooling(const Array& data, const Array& rois, const Array& trans, const
    ContribDeformablePSROIPoolingParams& p, const Into& out = {}) {
  return invoke("_contrib_DeformablePSROIPooling", {data, rois, trans}, p.attributes(), out);
}

struct ContribModulatedDeformableConvolutionParams {
  Required<std::vector<int64_t>> kernel;  // Size of the kernel, (height, width).
  std::vector<int64_t> stride = {};  // Stride between outputs; () is (1, 1).
  std::vector<int64_t> dilate = {};  // Distance between kernel points; () is (1, 1).
  std::vector<int64_t> pad = {};  // Width of the padding around data; () is (0, 0).
  int64_t num_deformable_group = 1;  // Groups of channels that have offsets of their own.
  Required<int64_t> num_filter;  // Channels of the output.
  int64_t num_group = 1;  // Groups of channels that are convolved separately.
  bool no_bias = false;  // Whether there is no bias.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "kernel", this->kernel);
    detail::add(given, "stride", this->stride, std::vector<int64_t>({}));
    detail::add(given, "dilate", this->dilate, std::vector<int64_t>({}));
    detail::add(given, "pad", this->pad, std::vector<int64_t>({}));
    detail::add(given, "num_deformable_group", this->num_deformable_group, int64_t(1));
    detail::add(given, "num_filter", this->num_filter);
    detail::add(given, "num_group", this->num_group, int64_t(1));
    detail::add(given, "no_bias", this->no_bias, bool(false));
    return given;
  }
};
// Deformable convolution that multiplies the value at each kernel point by a factor, the mask, per output pixel.
inline Array ModulatedDeformableConvolution(const Array& data, const Array& offset, const Array& mask, const Array&
    weight, const ContribModulatedDeformableConvolutionParams& p, const Into& out = {}) {
  return invoke("_contrib_ModulatedDeformableConvolution", {data, offset, mask, weight}, p.attributes(), out);
}
inline Array ModulatedDeformableConvolution(const Array& data, const Array& offset, const Array& mask, const Array&
    weight, const Array& bias, const ContribModulatedDeformableConvolutionParams& p, const Into& out = {}) {
  return invoke("_contrib_ModulatedDeformableConvolution", {data, offset, mask, weight, bias}, p.attributes(), out);
}

struct ContribMultiBoxDetectionParams {
  bool clip = true;  // Whether boxes are clipped to the image.
  double threshold = 0.01;  // Minimum probability of a detection.
  // A box is removed if it overlaps a better box by this or more; outside (0, 1]: no box is removed.
  double nms_threshold = 0.5;
  bool force_suppress = false;  // Whether a box is suppressed by boxes of other classes, too.
  int64_t nms_topk = -1;  // Number of best boxes that are kept; not positive: all.
  std::vector<double> variances = {0.1, 0.1, 0.2, 0.2};  // Factors of the offsets of x, y, width and height.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "clip", this->clip, bool(true));
    detail::add(given, "threshold", this->threshold, double(0.01));
    detail::add(given, "nms_threshold", this->nms_threshold, double(0.5));
    detail::add(given, "force_suppress", this->force_suppress, bool(false));
    detail::add(given, "nms_topk", this->nms_topk, int64_t(-1));
    detail::add(given, "variances", this->variances, std::vector<double>({0.1, 0.1, 0.2, 0.2}));
    return given;
  }
};
// Boxes of the most probable classes, sorted by falling probability; class -1 marks boxes that overlap a better box of
// their class and, at the end, unused rows. Gradients are zero.
inline Array MultiBoxDetection(const Array& cls_prob, const Array& loc_pred, const Array& anchor, const
    ContribMultiBoxDetectionParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_MultiBoxDetection", {cls_prob, loc_pred, anchor}, p.attributes(), out);
}

struct ContribMultiBoxPriorParams {
  std::vector<double> sizes = {1.0};  // Heights of the anchors, as fractions of the image.
  // Width divided by height. The first is combined with every size, the others with the first size.
  std::vector<double> ratios = {1.0};
  bool clip = false;  // Whether anchors are clipped to the image.
  // Distances of pixels along y and x, as fractions of the image; not positive: the inverse of the size of data.
  std::vector<double> steps = {-1.0, -1.0};
  // Position of the anchors' center in a pixel, along y and x, each in [0, 1].
  std::vector<double> offsets = {0.5, 0.5};
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "sizes", this->sizes, std::vector<double>({1.0}));
    detail::add(given, "ratios", this->ratios, std::vector<double>({1.0}));
    detail::add(given, "clip", this->clip, bool(false));
    detail::add(given, "steps", this->steps, std::vector<double>({-1.0, -1.0}));
    detail::add(given, "offsets", this->offsets, std::vector<double>({0.5, 0.5}));
    return given;
  }
};
// Anchors (left, top, right, bottom), as fractions of the image, around every pixel of data: each size with the first
// ratio, the first size with the other ratios.
inline Array MultiBoxPrior(const Array& data, const ContribMultiBoxPriorParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_MultiBoxPrior", {data}, p.attributes(), out);
}

struct ContribMultiBoxTargetParams {
  // An anchor whose overlap with an object is larger is positive; not positive: only the best anchor of each object is.
  double overlap_threshold = 0.5;
  double ignore_label = -1.0;  // Class target of ignored anchors.
  // Negative anchors per positive one, chosen by the lowest background probability; not positive: all are negative.
  double negative_mining_ratio = -1.0;
  double negative_mining_thresh = 0.5;  // Only anchors whose overlap with every object is smaller are mined.
  std::vector<double> variances = {0.1, 0.1, 0.2, 0.2};  // Divisors of the offsets of x, y, width and height.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "overlap_threshold", this->overlap_threshold, double(0.5));
    detail::add(given, "ignore_label", this->ignore_label, double(-1.0));
    detail::add(given, "negative_mining_ratio", this->negative_mining_ratio, double(-1.0));
    detail::add(given, "negative_mining_thresh", this->negative_mining_thresh, double(0.5));
    detail::add(given, "variances", this->variances, std::vector<double>({0.1, 0.1, 0.2, 0.2}));
    return given;
  }
};
// Training targets of anchors: every object is matched with the anchor that overlaps it most, then every anchor with an
// object that it overlaps enough; the others are background. Gradients are zero.
inline Outputs MultiBoxTarget(const Array& anchor, const Array& label, const Array& cls_pred, const
    ContribMultiBoxTargetParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_MultiBoxTarget", {anchor, label, cls_pred}, p.attributes(), out);
}

struct ContribMultiProposalParams {
  int64_t rpn_pre_nms_top_n = 6000;  // Number of best anchors that take part; not positive: all.
  int64_t rpn_post_nms_top_n = 300;  // Number of regions per image.
  double threshold = 0.7;  // A region is removed if its overlap with a better one is larger.
  int64_t rpn_min_size = 16;  // Minimum height and width of a region, in input pixels.
  std::vector<double> scales = {4.0, 8.0, 16.0, 32.0};  // Sizes of anchors, in strides.
  std::vector<double> ratios = {0.5, 1.0, 2.0};  // Height divided by width of anchors.
  int64_t feature_stride = 16;  // Image pixels per pixel of the scores.
  bool output_score = false;  // Whether the scores are a second output.
  bool iou_loss = false;  // Whether the offsets refer to corners, not to center and log size.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "rpn_pre_nms_top_n", this->rpn_pre_nms_top_n, int64_t(6000));
    detail::add(given, "rpn_post_nms_top_n", this->rpn_post_nms_top_n, int64_t(300));
    detail::add(given, "threshold", this->threshold, double(0.7));
    detail::add(given, "rpn_min_size", this->rpn_min_size, int64_t(16));
    detail::add(given, "scales", this->scales, std::vector<double>({4.0, 8.0, 16.0, 32.0}));
    detail::add(given, "ratios", this->ratios, std::vector<double>({0.5, 1.0, 2.0}));
    detail::add(given, "feature_stride", this->feature_stride, int64_t(16));
    detail::add(given, "output_score", this->output_score, bool(false));
    detail::add(given, "iou_loss", this->iou_loss, bool(false));
    return given;
  }
};
// Regions of interest from a region proposal network: anchors displaced by predicted offsets, of which non-maximum
// suppression keeps the best. Gradients are zero.
inline Outputs MultiProposal(const Array& cls_prob, const Array& bbox_pred, const Array& im_info, const
    ContribMultiProposalParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_MultiProposal", {cls_prob, bbox_pred, im_info}, p.attributes(), out);
}

struct ContribPSROIPoolingParams {
  // Ratio of the size of data to the size of the image whose coordinates the regions use.
  Required<double> spatial_scale;
  Required<int64_t> output_dim;  // Channels of the output.
  Required<int64_t> pooled_size;  // Bins along each side of a region.
  int64_t group_size = 0;  // Groups of channels along each side; 0: pooled_size.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "spatial_scale", this->spatial_scale);
    detail::add(given, "output_dim", this->output_dim);
    detail::add(given, "pooled_size", this->pooled_size);
    detail::add(given, "group_size", this->group_size, int64_t(0));
    return given;
  }
};
// Means of the bins of regions; bin (y, x) of output channel c is read from channel (c * group_size + gy) * group_size
// + gx.
inline Array PSROIPooling(const Array& data, const Array& rois, const ContribPSROIPoolingParams& p, const Into& out =
    {}) {
  return invoke("_contrib_PSROIPooling", {data, rois}, p.attributes(), out);
}

struct ContribProposalParams {
  int64_t rpn_pre_nms_top_n = 6000;  // Number of best anchors that take part; not positive: all.
  int64_t rpn_post_nms_top_n = 300;  // Number of regions per image.
  double threshold = 0.7;  // A region is removed if its overlap with a better one is larger.
  int64_t rpn_min_size = 16;  // Minimum height and width of a region, in input pixels.
  std::vector<double> scales = {4.0, 8.0, 16.0, 32.0};  // Sizes of anchors, in strides.
  std::vector<double> ratios = {0.5, 1.0, 2.0};  // Height divided by width of anchors.
  int64_t feature_stride = 16;  // Image pixels per pixel of the scores.
  bool output_score = false;  // Whether the scores are a second output.
  bool iou_loss = false;  // Whether the offsets refer to corners, not to center and log size.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "rpn_pre_nms_top_n", this->rpn_pre_nms_top_n, int64_t(6000));
    detail::add(given, "rpn_post_nms_top_n", this->rpn_post_nms_top_n, int64_t(300));
    detail::add(given, "threshold", this->threshold, double(0.7));
    detail::add(given, "rpn_min_size", this->rpn_min_size, int64_t(16));
    detail::add(given, "scales", this->scales, std::vector<double>({4.0, 8.0, 16.0, 32.0}));
    detail::add(given, "ratios", this->ratios, std::vector<double>({0.5, 1.0, 2.0}));
    detail::add(given, "feature_stride", this->feature_stride, int64_t(16));
    detail::add(given, "output_score", this->output_score, bool(false));
    detail::add(given, "iou_loss", this->iou_loss, bool(false));
    return given;
  }
};
// Regions of interest from a region proposal network: anchors displaced by predicted offsets, of which non-maximum
// suppression keeps the best. Gradients are zero.
inline Outputs Proposal(const Array& cls_prob, const Array& bbox_pred, const Array& im_info, const
    ContribProposalParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_Proposal", {cls_prob, bbox_pred, im_info}, p.attributes(), out);
}

struct ContribROIAlignParams {
  Required<std::vector<int64_t>> pooled_size;  // (height, width) of the output.
  Required<double> spatial_scale;  // Ratio of the size of data to the size of the image whose coordinates rois use.
  // Points along each axis of a window, at most 256; not positive: the number of pixels, at most 1024.
  int64_t sample_ratio = -1;
  // Whether each window reads its own channels: channels of data = channels of output * windows.
  bool position_sensitive = false;
  bool aligned = false;  // Whether coordinates are shifted by half a pixel, and regions may be smaller than a pixel.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "pooled_size", this->pooled_size);
    detail::add(given, "spatial_scale", this->spatial_scale);
    detail::add(given, "sample_ratio", this->sample_ratio, int64_t(-1));
    detail::add(given, "position_sensitive", this->position_sensitive, bool(false));
    detail::add(given, "aligned", this->aligned, bool(false));
    return given;
  }
};
// Averages of interpolated points in pooled_size windows over each region of interest. Coordinates are not rounded.
// Regions with an invalid image number give 0; a negative image number skips a region.
inline Array ROIAlign(const Array& data, const Array& rois, const ContribROIAlignParams& p, const Into& out = {}) {
  return invoke("_contrib_ROIAlign", {data, rois}, p.attributes(), out);
}

struct ContribRROIAlignParams {
  Required<std::vector<int64_t>> pooled_size;  // Bins of a region: (height, width).
  // Ratio of the size of data to the size of the image whose coordinates the regions use.
  Required<double> spatial_scale;
  // Points per bin along each side, at most 256; not positive: the number of pixels of a bin, at most 1024.
  int64_t sampling_ratio = -1;
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "pooled_size", this->pooled_size);
    detail::add(given, "spatial_scale", this->spatial_scale);
    detail::add(given, "sampling_ratio", this->sampling_ratio, int64_t(-1));
    return given;
  }
};
// Means of points in the bins of rotated regions, read by bilinear interpolation. Gradients of regions are zero.
inline Array RROIAlign(const Array& data, const Array& rois, const ContribRROIAlignParams& p, const Into& out = {}) {
  return invoke("_contrib_RROIAlign", {data, rois}, p.attributes(), out);
}

struct ContribSparseEmbeddingParams {
  Required<int64_t> input_dim;  // Number of rows of weight.
  Required<int64_t> output_dim;  // Length of a row of weight.
  HnDType dtype = HN_FLOAT32;  // Dtype of weight if nothing else determines it.
  bool sparse_grad = false;  // Requests a row_sparse gradient of weight; the storage of its buffer decides.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "input_dim", this->input_dim);
    detail::add(given, "output_dim", this->output_dim);
    detail::add(given, "dtype", this->dtype, HnDType(HN_FLOAT32));
    detail::add(given, "sparse_grad", this->sparse_grad, bool(false));
    return given;
  }
};
// Rows of weight, selected by data; indices out of range select the nearest row.
inline Array SparseEmbedding(const Array& data, const Array& weight, const ContribSparseEmbeddingParams& p, const Into&
    out = {}) {
  return invoke("_contrib_SparseEmbedding", {data, weight}, p.attributes(), out);
}

struct ContribSyncBatchNormParams {
  double eps = 0.0010000000474974513;  // Added to the variance.
  double momentum = 0.8999999761581421;  // Factor of the old moving statistics.
  bool fix_gamma = true;  // Whether gamma is treated as 1 and has no gradient.
  bool use_global_stats = false;  // Whether the moving statistics are used in training, too.
  bool output_mean_var = false;  // Whether mean and var are outputs, too.
  Required<std::string> key;  // Name of the group of layers that share statistics.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "eps", this->eps, double(0.0010000000474974513));
    detail::add(given, "momentum", this->momentum, double(0.8999999761581421));
    detail::add(given, "fix_gamma", this->fix_gamma, bool(true));
    detail::add(given, "use_global_stats", this->use_global_stats, bool(false));
    detail::add(given, "output_mean_var", this->output_mean_var, bool(false));
    detail::add(given, "key", this->key);
    return given;
  }
};
// BatchNorm with statistics over the devices of one process group; on one device they are those of its batch.
inline Outputs SyncBatchNorm(const Array& data, const Array& gamma, const Array& beta, const Array& moving_mean, const
    Array& moving_var, const ContribSyncBatchNormParams& p, const Into& out = {}) {
  return invoke("_contrib_SyncBatchNorm", {data, gamma, beta, moving_mean, moving_var}, p.attributes(), out);
}

struct ContribAllcloseParams {
  double rtol = 1e-05;  // Tolerance relative to |b|.
  double atol = 1e-08;  // Absolute tolerance.
  bool equal_nan = true;  // Whether NaN equals NaN.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "rtol", this->rtol, double(1e-05));
    detail::add(given, "atol", this->atol, double(1e-08));
    detail::add(given, "equal_nan", this->equal_nan, bool(true));
    return given;
  }
};
// 1 if |a - b| <= atol + rtol * |b| for all elements, else 0.
inline Array allclose(const Array& a, const Array& b, const ContribAllcloseParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_allclose", {a, b}, p.attributes(), out);
}

struct ContribArangeLikeParams {
  double start = 0.0;  // First value.
  double step = 1.0;  // Distance between values.
  int64_t repeat = 1;  // Number of repetitions of each value.
  std::optional<int64_t> axis = std::nullopt;  // Axis of data to count along; None: all elements.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "start", this->start, double(0.0));
    detail::add(given, "step", this->step, double(1.0));
    detail::add(given, "repeat", this->repeat, int64_t(1));
    detail::add(given, "axis", this->axis, std::optional<int64_t>(std::nullopt));
    return given;
  }
};
// Evenly spaced values, one per element of data or per position along one of its axes. Integers that the dtype of data
// cannot hold (bfloat16: above 256) are rounded, with a warning.
inline Array arange_like(const Array& data, const ContribArangeLikeParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_arange_like", {data}, p.attributes(), out);
}

struct ContribBipartiteMatchingParams {
  bool is_ascend = false;  // Whether small scores are the better ones.
  Required<double> threshold;  // Scores must be better than this.
  int64_t topk = -1;  // Maximum number of pairs; not positive: no limit.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "is_ascend", this->is_ascend, bool(false));
    detail::add(given, "threshold", this->threshold);
    detail::add(given, "topk", this->topk, int64_t(-1));
    return given;
  }
};
// Pairs of rows and columns: the best remaining score forms a pair, whose row and column are then removed. Gradients
// are zero.
inline Outputs bipartite_matching(const Array& data, const ContribBipartiteMatchingParams& p, const Into& out = {}) {
  return invoke("_contrib_bipartite_matching", {data}, p.attributes(), out);
}

struct ContribBooleanMaskParams {
  int64_t axis = 0;  // The axis to select from.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, int64_t(0));
    return given;
  }
};
// The slices of data along an axis whose mask value is not zero.
inline Array boolean_mask(const Array& data, const Array& index, const ContribBooleanMaskParams& p = {}, const Into& out
    = {}) {
  return invoke("_contrib_boolean_mask", {data, index}, p.attributes(), out);
}

struct ContribBoxDecodeParams {
  double std0 = 1.0;  // Factor of the first encoded number, x.
  double std1 = 1.0;  // Factor of the second, y.
  double std2 = 1.0;  // Factor of the third, width.
  double std3 = 1.0;  // Factor of the fourth, height.
  double clip = -1.0;  // Upper bound of the log sizes; not positive: no bound.
  // Coordinates of the anchors: corner (left, top, right, bottom) or center (x, y, width, height). One of: corner,
  // center.
  std::string format = "center";
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "std0", this->std0, double(1.0));
    detail::add(given, "std1", this->std1, double(1.0));
    detail::add(given, "std2", this->std2, double(1.0));
    detail::add(given, "std3", this->std3, double(1.0));
    detail::add(given, "clip", this->clip, double(-1.0));
    detail::add(given, "format", this->format, std::string("center"));
    return given;
  }
};
// Boxes (left, top, right, bottom) from offsets and anchors: the inverse of _contrib_box_encode. Gradients are zero.
inline Array box_decode(const Array& data, const Array& anchors, const ContribBoxDecodeParams& p = {}, const Into& out =
    {}) {
  return invoke("_contrib_box_decode", {data, anchors}, p.attributes(), out);
}

// Boxes as offsets from anchors: ((x - ax) / aw, (y - ay) / ah, log(w / aw), log(h / ah)), minus means, by stds; zero
// for anchors without a positive sample. Gradients are zero.
inline Outputs box_encode(const Array& samples, const Array& matches, const Array& anchors, const Array& refs, const
    Array& means, const Array& stds, const Into& out = {}) {
  return invoke("_contrib_box_encode", {samples, matches, anchors, refs, means, stds}, {}, out);
}

struct ContribBoxIouParams {
  // Coordinates: corner (left, top, right, bottom) or center (x, y, width, height). One of: corner, center.
  std::string format = "corner";
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "format", this->format, std::string("corner"));
    return given;
  }
};
// Intersection over union of every box of lhs with every box of rhs. Gradients are zero.
inline Array box_iou(const Array& lhs, const Array& rhs, const ContribBoxIouParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_box_iou", {lhs, rhs}, p.attributes(), out);
}

struct ContribBoxNmsParams {
  double overlap_thresh = 0.5;  // A box is removed if its intersection over union with a better box is larger.
  double valid_thresh = 0.0;  // Only boxes whose score is larger take part.
  int64_t topk = -1;  // Number of best boxes that take part; negative: all; 0: the output is data.
  int64_t coord_start = 2;  // Index of the first of the 4 coordinates of a box.
  int64_t score_index = 1;  // Index of the score of a box.
  int64_t id_index = -1;  // Index of the class of a box; negative: boxes have no class.
  int64_t background_id = -1;  // Boxes of this class do not take part.
  bool force_suppress = false;  // Whether a box is suppressed by boxes of other classes, too.
  // Coordinates of data: corner (left, top, right, bottom) or center (x, y, width, height). One of: corner, center.
  std::string in_format = "corner";
  std::string out_format = "corner";  // Coordinates of the output. One of: corner, center.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "overlap_thresh", this->overlap_thresh, double(0.5));
    detail::add(given, "valid_thresh", this->valid_thresh, double(0.0));
    detail::add(given, "topk", this->topk, int64_t(-1));
    detail::add(given, "coord_start", this->coord_start, int64_t(2));
    detail::add(given, "score_index", this->score_index, int64_t(1));
    detail::add(given, "id_index", this->id_index, int64_t(-1));
    detail::add(given, "background_id", this->background_id, int64_t(-1));
    detail::add(given, "force_suppress", this->force_suppress, bool(false));
    detail::add(given, "in_format", this->in_format, std::string("corner"));
    detail::add(given, "out_format", this->out_format, std::string("corner"));
    return given;
  }
};
// Non-maximum suppression: boxes sorted by falling score, without those that overlap a better one of their class; the
// rows left over at the end are filled with -1. Gradients flow to the kept boxes.
inline Array box_nms(const Array& data, const ContribBoxNmsParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_box_nms", {data}, p.attributes(), out);
}

struct ContribCalibrateEntropyParams {
  int64_t num_quantized_bins = 255;  // Number of quantization steps inside the range.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "num_quantized_bins", this->num_quantized_bins, int64_t(255));
    return given;
  }
};
// The threshold in the histogram of a tensor, symmetric around zero, at which values cut off there and rounded to
// num_quantized_bins steps are distributed most like the values themselves.
inline Outputs calibrate_entropy(const Array& hist, const Array& hist_edges, const ContribCalibrateEntropyParams& p =
    {}, const Into& out = {}) {
  return invoke("_contrib_calibrate_entropy", {hist, hist_edges}, p.attributes(), out);
}

struct ContribCountSketchParams {
  Required<int64_t> out_dim;  // Number of elements of a sketch.
  int64_t processing_batch_size = 32;  // Number of vectors that MXNet processes at a time; without effect.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "out_dim", this->out_dim);
    detail::add(given, "processing_batch_size", this->processing_batch_size, int64_t(32));
    return given;
  }
};
// Sketches of vectors: element i is multiplied by s[i] and added to element h[i] of the sketch.
inline Array count_sketch(const Array& data, const Array& h, const Array& s, const ContribCountSketchParams& p, const
    Into& out = {}) {
  return invoke("_contrib_count_sketch", {data, h, s}, p.attributes(), out);
}

struct ContribDequantizeParams {
  HnDType out_type = HN_FLOAT32;  // float32.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "out_type", this->out_type, HnDType(HN_FLOAT32));
    return given;
  }
};
// Converts quantized bytes to floats.
inline Array dequantize(const Array& data, const Array& min_range, const Array& max_range, const
    ContribDequantizeParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_dequantize", {data, min_range, max_range}, p.attributes(), out);
}

// Divides by the square root of the size of the last axis, for attention scores.
inline Array div_sqrt_dim(const Array& data, const Into& out = {}) {
  return invoke("_contrib_div_sqrt_dim", {data}, {}, out);
}

struct ContribDynamicQuantizedFullyConnectedParams {
  Required<int64_t> num_hidden;  // Number of outputs per row.
  bool no_bias = false;  // Whether the bias input is absent, and its range where a bias has one.
  // Whether all axes of data except the first are merged; otherwise the layer applies to the last axis.
  bool flatten = true;
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "num_hidden", this->num_hidden);
    detail::add(given, "no_bias", this->no_bias, bool(false));
    detail::add(given, "flatten", this->flatten, bool(true));
    return given;
  }
};
// FullyConnected with data that is rounded to bytes, and weights of bytes that have one scale per output:
// (rounded(data) weight^T) * scale + bias, with exact sums. Each row of data is rounded to the nearest of 256 values
// with equal distances, from the smaller of its least value and 0 to the larger of its largest value and 0. A row with
// NaN or infinities gives NaN.
inline Array dynamic_quantized_fully_connected(const Array& data, const Array& weight, const Array& scale, const
    ContribDynamicQuantizedFullyConnectedParams& p, const Into& out = {}) {
  return invoke("_contrib_dynamic_quantized_fully_connected", {data, weight, scale}, p.attributes(), out);
}
inline Array dynamic_quantized_fully_connected(const Array& data, const Array& weight, const Array& scale, const Array&
    bias, const ContribDynamicQuantizedFullyConnectedParams& p, const Into& out = {}) {
  return invoke("_contrib_dynamic_quantized_fully_connected", {data, weight, scale, bias}, p.attributes(), out);
}

// The values of a sparse matrix at (u[i], v[i]), -1 if none is stored.
inline Array edge_id(const Array& data, const Array& u, const Array& v, const Into& out = {}) {
  return invoke("_contrib_edge_id", {data, u, v}, {}, out);
}

struct ContribFftParams {
  int64_t compute_size = 128;  // Number of vectors that MXNet transforms at a time; without effect.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "compute_size", this->compute_size, int64_t(128));
    return given;
  }
};
// Discrete Fourier transforms of real vectors, not normalized.
inline Array fft(const Array& data, const ContribFftParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_fft", {data}, p.attributes(), out);
}

struct ContribFlashAttentionParams {
  std::optional<double> scale = std::nullopt;  // Factor of the scores; None: 1 / sqrt(size of a query).
  bool causal = false;  // Query i attends to the keys 0 to i only.
  // Meaning of the input mask. added: terms added to the scaled scores; kept: 0 excludes a key; lengths: number of
  // leading keys that take part. One of: none, added, kept, lengths.
  std::string mask_type = "none";
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scale", this->scale, std::optional<double>(std::nullopt));
    detail::add(given, "causal", this->causal, bool(false));
    detail::add(given, "mask_type", this->mask_type, std::string("none"));
    return given;
  }
};
// softmax(scale * query key^T + mask) value, in memory linear in the lengths, not in their product. The output of a
// query that attends to no key is zero.  Dao, Fu, Ermon, Rudra, Re: FlashAttention: fast and memory-efficient exact
// attention with IO-awareness, NeurIPS 2022; Milakov, Gimelshein: Online normalizer calculation for softmax, 2018.
inline Array flash_attention(const Array& query, const Array& key, const Array& value, const
    ContribFlashAttentionParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_flash_attention", {query, key, value}, p.attributes(), out);
}
inline Array flash_attention(const Array& query, const Array& key, const Array& value, const Array& mask, const
    ContribFlashAttentionParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_flash_attention", {query, key, value, mask}, p.attributes(), out);
}

struct ContribGetnnzParams {
  std::optional<int64_t> axis = std::nullopt;  // None: count in the whole matrix, 0: per column, 1: per row.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, std::optional<int64_t>(std::nullopt));
    return given;
  }
};
// The number of stored values of a sparse matrix, which are the nonzero values.
inline Array getnnz(const Array& data, const ContribGetnnzParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_getnnz", {data}, p.attributes(), out);
}

struct ContribGradientmultiplierParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// Copies the input; its gradient is multiplied by scalar. A negative scalar reverses the gradient, for domain-
// adversarial training (Ganin and Lempitsky, ICML 2015).
inline Array gradientmultiplier(const Array& data, const ContribGradientmultiplierParams& p = {}, const Into& out = {})
    {
  return invoke("_contrib_gradientmultiplier", {data}, p.attributes(), out);
}

struct ContribGroupAdagradUpdateParams {
  Required<double> lr;  // Learning rate.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  double epsilon = 1e-05;  // Added under the root, against division by zero.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lr", this->lr);
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    detail::add(given, "epsilon", this->epsilon, double(1e-05));
    return given;
  }
};
// g = clip(rescale_grad * grad); history += mean of g * g over the row; weight -= lr * g / sqrt(history + epsilon)
inline Array group_adagrad_update(const Array& weight, const Array& grad, const Array& history, const
    ContribGroupAdagradUpdateParams& p, const Into& out = {}) {
  return invoke("_contrib_group_adagrad_update", {weight, grad, history}, p.attributes(), out);
}

// 0 for x <= -3, x for x >= 3, x * (x + 3) / 6 between: a swish of three pieces, exact in few instructions.
inline Array hard_swish(const Array& data, const Into& out = {}) {
  return invoke("_contrib_hard_swish", {data}, {}, out);
}

// Log likelihood of Hawkes processes: intensity lda + alpha * sum of beta * exp(-beta * (t - t_i)) over past events.
// lda, alpha and beta have gradients.
inline Outputs hawkesll(const Array& lda, const Array& alpha, const Array& beta, const Array& state, const Array& lags,
    const Array& marks, const Array& valid_length, const Array& max_time, const Into& out = {}) {
  return invoke("_contrib_hawkesll", {lda, alpha, beta, state, lags, marks, valid_length, max_time}, {}, out);
}

struct ContribIfftParams {
  int64_t compute_size = 128;  // Number of vectors that MXNet transforms at a time; without effect.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "compute_size", this->compute_size, int64_t(128));
    return given;
  }
};
// Real parts of inverse discrete Fourier transforms, without the factor 1 / n.
inline Array ifft(const Array& data, const ContribIfftParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_ifft", {data}, p.attributes(), out);
}

struct ContribIndexArrayParams {
  OptionalInts axes = std::nullopt;  // The axes whose indices are returned; None: all.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axes", this->axes, OptionalInts(std::nullopt));
    return given;
  }
};
// The index of every element of data.
inline Array index_array(const Array& data, const ContribIndexArrayParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_index_array", {data}, p.attributes(), out);
}

struct ContribIndexCopyParams {
  int64_t axis = 0;  // The axis along which slices are replaced; negative values count from the end.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, int64_t(0));
    return given;
  }
};
// old_tensor with the slices at index_vector along an axis replaced by those of new_tensor; if indices repeat, the last
// slice is kept.
inline Array index_copy(const Array& old_tensor, const Array& index_vector, const Array& new_tensor, const
    ContribIndexCopyParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_index_copy", {old_tensor, index_vector, new_tensor}, p.attributes(), out);
}

struct ContribInterleavedMatmulEncdecQkParams {
  Required<int64_t> heads;  // Number of heads.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "heads", this->heads);
    return given;
  }
};
// Scores of attention to an encoder: queries times keys, divided by the root of the head size.
inline Array interleaved_matmul_encdec_qk(const Array& queries, const Array& keys_values, const
    ContribInterleavedMatmulEncdecQkParams& p, const Into& out = {}) {
  return invoke("_contrib_interleaved_matmul_encdec_qk", {queries, keys_values}, p.attributes(), out);
}

struct ContribInterleavedMatmulEncdecValattParams {
  Required<int64_t> heads;  // Number of heads.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "heads", this->heads);
    return given;
  }
};
// Values of an encoder, mixed by attention weights.
inline Array interleaved_matmul_encdec_valatt(const Array& keys_values, const Array& attention, const
    ContribInterleavedMatmulEncdecValattParams& p, const Into& out = {}) {
  return invoke("_contrib_interleaved_matmul_encdec_valatt", {keys_values, attention}, p.attributes(), out);
}

struct ContribInterleavedMatmulSelfattQkParams {
  Required<int64_t> heads;  // Number of heads.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "heads", this->heads);
    return given;
  }
};
// Scores of self-attention: queries times keys, divided by the root of the head size.
inline Array interleaved_matmul_selfatt_qk(const Array& queries_keys_values, const
    ContribInterleavedMatmulSelfattQkParams& p, const Into& out = {}) {
  return invoke("_contrib_interleaved_matmul_selfatt_qk", {queries_keys_values}, p.attributes(), out);
}

struct ContribInterleavedMatmulSelfattValattParams {
  Required<int64_t> heads;  // Number of heads.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "heads", this->heads);
    return given;
  }
};
// Values of self-attention, mixed by attention weights.
inline Array interleaved_matmul_selfatt_valatt(const Array& queries_keys_values, const Array& attention, const
    ContribInterleavedMatmulSelfattValattParams& p, const Into& out = {}) {
  return invoke("_contrib_interleaved_matmul_selfatt_valatt", {queries_keys_values, attention}, p.attributes(), out);
}

struct ContribQuadraticParams {
  double a = 0.0;  // Factor of data squared.
  double b = 0.0;  // Factor of data.
  double c = 0.0;  // Constant.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "a", this->a, double(0.0));
    detail::add(given, "b", this->b, double(0.0));
    detail::add(given, "c", this->c, double(0.0));
    return given;
  }
};
// a * data^2 + b * data + c, element by element.
inline Array quadratic(const Array& data, const ContribQuadraticParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_quadratic", {data}, p.attributes(), out);
}

struct ContribQuantizeParams {
  std::string out_type = "uint8";  // dtype of the output. One of: int8, uint8.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "out_type", this->out_type, std::string("uint8"));
    return given;
  }
};
// Quantizes floats: to uint8 for [min_range, max_range], or to int8 for values around zero.
inline Outputs quantize(const Array& data, const Array& min_range, const Array& max_range, const ContribQuantizeParams&
    p = {}, const Into& out = {}) {
  return invoke("_contrib_quantize", {data, min_range, max_range}, p.attributes(), out);
}

struct ContribQuantizeAsymParams {
  std::optional<double> min_calib_range = std::nullopt;  // Minimum value; None: minimum of data.
  std::optional<double> max_calib_range = std::nullopt;  // Maximum value; None: maximum of data.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "min_calib_range", this->min_calib_range, std::optional<double>(std::nullopt));
    detail::add(given, "max_calib_range", this->max_calib_range, std::optional<double>(std::nullopt));
    return given;
  }
};
// Quantizes floats to uint8 over their range: data * scale + shift, rounded.
inline Outputs quantize_asym(const Array& data, const ContribQuantizeAsymParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_quantize_asym", {data}, p.attributes(), out);
}

struct ContribQuantizeV2Params {
  // dtype of the output; auto: uint8 if min_calib_range is not negative. One of: auto, int8, uint8.
  std::string out_type = "int8";
  std::optional<double> min_calib_range = std::nullopt;  // Minimum value; None: minimum of data.
  std::optional<double> max_calib_range = std::nullopt;  // Maximum value; None: maximum of data.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "out_type", this->out_type, std::string("int8"));
    detail::add(given, "min_calib_range", this->min_calib_range, std::optional<double>(std::nullopt));
    detail::add(given, "max_calib_range", this->max_calib_range, std::optional<double>(std::nullopt));
    return given;
  }
};
// Quantizes floats, with a given range or the range of the data.
inline Outputs quantize_v2(const Array& data, const ContribQuantizeV2Params& p = {}, const Into& out = {}) {
  return invoke("_contrib_quantize_v2", {data}, p.attributes(), out);
}

struct ContribQuantizedActParams {
  // relu; the other activations change the range of the data and are not supported. One of: relu, sigmoid, softrelu,
  // softsign, tanh.
  Required<std::string> act_type;
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "act_type", this->act_type);
    return given;
  }
};
// relu of bytes.
inline Outputs quantized_act(const Array& data, const Array& min_data, const Array& max_data, const
    ContribQuantizedActParams& p, const Into& out = {}) {
  return invoke("_contrib_quantized_act", {data, min_data, max_data}, p.attributes(), out);
}

struct ContribQuantizedBatchNormParams {
  double eps = 0.0010000000474974513;  // Added to the variance.
  bool fix_gamma = true;  // Whether gamma is treated as 1.
  int64_t axis = 1;  // The axis of the channels.
  std::optional<double> min_calib_range = std::nullopt;  // Minimum value of the output. Required.
  std::optional<double> max_calib_range = std::nullopt;  // Maximum value of the output. Required.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "eps", this->eps, double(0.0010000000474974513));
    detail::add(given, "fix_gamma", this->fix_gamma, bool(true));
    detail::add(given, "axis", this->axis, int64_t(1));
    detail::add(given, "min_calib_range", this->min_calib_range, std::optional<double>(std::nullopt));
    detail::add(given, "max_calib_range", this->max_calib_range, std::optional<double>(std::nullopt));
    return given;
  }
};
// BatchNorm of quantized data by the moving statistics.
inline Outputs quantized_batch_norm(const Array& data, const Array& gamma, const Array& beta, const Array& moving_mean,
    const Array& moving_var, const Array& min_data, const Array& max_data, const ContribQuantizedBatchNormParams& p =
    {}, const Into& out = {}) {
  return invoke("_contrib_quantized_batch_norm", {data, gamma, beta, moving_mean, moving_var, min_data, max_data},
      p.attributes(), out);
}

struct ContribQuantizedConcatParams {
  Required<int64_t> num_args;  // Number of inputs.
  int64_t dim = 1;  // The axis along which inputs are joined.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "num_args", this->num_args);
    detail::add(given, "dim", this->dim, int64_t(1));
    return given;
  }
};
// Joins quantized tensors along an axis, in one range that contains all ranges. int8 if any input is.
inline Outputs quantized_concat(const std::vector<Array>& data, const ContribQuantizedConcatParams& p, const Into& out =
    {}) {
  return invoke("_contrib_quantized_concat", data, p.attributes(), out);
}

struct ContribQuantizedConvParams {
  Required<std::vector<int64_t>> kernel;  // Window: (w,), (h, w) or (d, h, w).
  std::vector<int64_t> stride = {};  // Strides of the window; empty: 1 everywhere.
  std::vector<int64_t> dilate = {};  // Distance between taps; empty: 1 everywhere.
  std::vector<int64_t> pad = {};  // Zeros added on both sides; empty: none.
  Required<int64_t> num_filter;  // Number of output channels.
  int64_t num_group = 1;  // Number of groups into which channels are split; each group is convolved separately.
  bool no_bias = false;  // Whether the bias input is absent.
  // Order of the axes of data, weight and output; None: channels second. One of: NCW, NCHW, NCDHW, NWC, NHWC, NDHWC.
  std::optional<std::string> layout = std::nullopt;
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "kernel", this->kernel);
    detail::add(given, "stride", this->stride, std::vector<int64_t>({}));
    detail::add(given, "dilate", this->dilate, std::vector<int64_t>({}));
    detail::add(given, "pad", this->pad, std::vector<int64_t>({}));
    detail::add(given, "num_filter", this->num_filter);
    detail::add(given, "num_group", this->num_group, int64_t(1));
    detail::add(given, "no_bias", this->no_bias, bool(false));
    detail::add(given, "layout", this->layout, std::optional<std::string>(std::nullopt));
    return given;
  }
};
// Convolution of quantized tensors, with 32-bit sums. All ranges have 127 steps, for uint8 data, too: the value of a
// byte is byte * max(|min|, |max|) / 127.
inline Outputs quantized_conv(const Array& data, const Array& weight, const Array& bias, const Array& min_data, const
    Array& max_data, const Array& min_weight, const ContribQuantizedConvParams& p, const Into& out = {}) {
  return invoke("_contrib_quantized_conv", {data, weight, bias, min_data, max_data, min_weight}, p.attributes(), out);
}
inline Outputs quantized_conv(const Array& data, const Array& weight, const Array& bias, const Array& min_data, const
    Array& max_data, const Array& min_weight, const Array& max_weight, const Array& min_bias, const Array& max_bias,
    const ContribQuantizedConvParams& p, const Into& out = {}) {
  return invoke("_contrib_quantized_conv", {data, weight, bias, min_data, max_data, min_weight, max_weight, min_bias,
      max_bias}, p.attributes(), out);
}

struct ContribQuantizedElemwiseAddParams {
  std::optional<double> min_calib_range = std::nullopt;  // Minimum value of the output; None: the output is int32.
  std::optional<double> max_calib_range = std::nullopt;  // Maximum value of the output; None: the output is int32.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "min_calib_range", this->min_calib_range, std::optional<double>(std::nullopt));
    detail::add(given, "max_calib_range", this->max_calib_range, std::optional<double>(std::nullopt));
    return given;
  }
};
// Sum of bytes that may have different ranges.
inline Outputs quantized_elemwise_add(const Array& lhs, const Array& rhs, const Array& lhs_min, const Array& lhs_max,
    const Array& rhs_min, const Array& rhs_max, const ContribQuantizedElemwiseAddParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_quantized_elemwise_add", {lhs, rhs, lhs_min, lhs_max, rhs_min, rhs_max}, p.attributes(), out);
}

struct ContribQuantizedElemwiseMulParams {
  std::optional<double> min_calib_range = std::nullopt;  // Minimum value of the output; None: the output is int32.
  std::optional<double> max_calib_range = std::nullopt;  // Maximum value of the output; None: the output is int32.
  bool enable_float_output = false;  // Whether the only output is float32, without a range.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "min_calib_range", this->min_calib_range, std::optional<double>(std::nullopt));
    detail::add(given, "max_calib_range", this->max_calib_range, std::optional<double>(std::nullopt));
    detail::add(given, "enable_float_output", this->enable_float_output, bool(false));
    return given;
  }
};
// Product of bytes, element by element.
inline Outputs quantized_elemwise_mul(const Array& lhs, const Array& rhs, const Array& lhs_min, const Array& lhs_max,
    const Array& rhs_min, const Array& rhs_max, const ContribQuantizedElemwiseMulParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_quantized_elemwise_mul", {lhs, rhs, lhs_min, lhs_max, rhs_min, rhs_max}, p.attributes(), out);
}

struct ContribQuantizedEmbeddingParams {
  Required<int64_t> input_dim;  // Number of rows of weight.
  Required<int64_t> output_dim;  // Length of a row of weight.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "input_dim", this->input_dim);
    detail::add(given, "output_dim", this->output_dim);
    return given;
  }
};
// Rows of a quantized matrix, selected by data; indices out of range select the nearest row.
inline Outputs quantized_embedding(const Array& data, const Array& weight, const Array& min_weight, const Array&
    max_weight, const ContribQuantizedEmbeddingParams& p, const Into& out = {}) {
  return invoke("_contrib_quantized_embedding", {data, weight, min_weight, max_weight}, p.attributes(), out);
}

// Flatten of bytes.
inline Outputs quantized_flatten(const Array& data, const Array& min_data, const Array& max_data, const Into& out = {})
    {
  return invoke("_contrib_quantized_flatten", {data, min_data, max_data}, {}, out);
}

struct ContribQuantizedFullyConnectedParams {
  Required<int64_t> num_hidden;  // Number of outputs per row.
  bool no_bias = false;  // Whether the bias input is absent, and its range where a bias has one.
  // Whether all axes of data except the first are merged; otherwise the layer applies to the last axis.
  bool flatten = true;
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "num_hidden", this->num_hidden);
    detail::add(given, "no_bias", this->no_bias, bool(false));
    detail::add(given, "flatten", this->flatten, bool(true));
    return given;
  }
};
// FullyConnected of quantized tensors, with 32-bit sums.
inline Outputs quantized_fully_connected(const Array& data, const Array& weight, const Array& bias, const Array&
    min_data, const Array& max_data, const Array& min_weight, const ContribQuantizedFullyConnectedParams& p, const Into&
    out = {}) {
  return invoke("_contrib_quantized_fully_connected", {data, weight, bias, min_data, max_data, min_weight},
      p.attributes(), out);
}
inline Outputs quantized_fully_connected(const Array& data, const Array& weight, const Array& bias, const Array&
    min_data, const Array& max_data, const Array& min_weight, const Array& max_weight, const Array& min_bias, const
    Array& max_bias, const ContribQuantizedFullyConnectedParams& p, const Into& out = {}) {
  return invoke("_contrib_quantized_fully_connected", {data, weight, bias, min_data, max_data, min_weight, max_weight,
      min_bias, max_bias}, p.attributes(), out);
}

// hard_swish of bytes, rounded to the nearest step of the range of the results.
inline Outputs quantized_hard_swish(const Array& data, const Array& min_data, const Array& max_data, const Into& out =
    {}) {
  return invoke("_contrib_quantized_hard_swish", {data, min_data, max_data}, {}, out);
}

struct ContribQuantizedPoolingParams {
  std::vector<int64_t> kernel = {};  // Window: (w,), (h, w) or (d, h, w).
  std::string pool_type = "max";  // The reduction of each window. One of: max, avg, sum, lp.
  bool global_pool = false;  // Whether the window is the whole image.
  // valid: windows inside the padded image only; full: also a window over the rest; same: ceil(size / stride) outputs.
  // One of: full, valid, same.
  std::string pooling_convention = "valid";
  std::vector<int64_t> stride = {};  // Strides of the window; empty: 1 everywhere.
  std::vector<int64_t> pad = {};  // Padding on both sides; empty: none.
  std::optional<int64_t> p_value = std::nullopt;  // Exponent of pool_type lp.
  std::optional<bool> count_include_pad = std::nullopt;  // Whether an average includes the padding; None: True.
  // Order of the axes; None: channels second. One of: NCW, NCHW, NCDHW, NWC, NHWC, NDHWC.
  std::optional<std::string> layout = std::nullopt;
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "kernel", this->kernel, std::vector<int64_t>({}));
    detail::add(given, "pool_type", this->pool_type, std::string("max"));
    detail::add(given, "global_pool", this->global_pool, bool(false));
    detail::add(given, "pooling_convention", this->pooling_convention, std::string("valid"));
    detail::add(given, "stride", this->stride, std::vector<int64_t>({}));
    detail::add(given, "pad", this->pad, std::vector<int64_t>({}));
    detail::add(given, "p_value", this->p_value, std::optional<int64_t>(std::nullopt));
    detail::add(given, "count_include_pad", this->count_include_pad, std::optional<bool>(std::nullopt));
    detail::add(given, "layout", this->layout, std::optional<std::string>(std::nullopt));
    return given;
  }
};
// Maximum or average of windows of a quantized image.
inline Outputs quantized_pooling(const Array& data, const Array& min_data, const Array& max_data, const
    ContribQuantizedPoolingParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_quantized_pooling", {data, min_data, max_data}, p.attributes(), out);
}

struct ContribQuantizedRnnParams {
  Required<int64_t> state_size;  // Size of the state.
  Required<int64_t> num_layers;  // Number of stacked layers.
  bool bidirectional = false;  // Whether each layer also reads the sequence backwards.
  Required<std::string> mode;  // lstm; the other cells are not supported. One of: gru, lstm, rnn_relu, rnn_tanh.
  bool state_outputs = false;  // Whether the final states are outputs, too.
  std::optional<int64_t> projection_size = std::nullopt;  // None: not supported.
  std::optional<double> lstm_state_clip_min = std::nullopt;  // None: not supported.
  std::optional<double> lstm_state_clip_max = std::nullopt;  // None: not supported.
  bool use_sequence_length = false;  // False: not supported.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "state_size", this->state_size);
    detail::add(given, "num_layers", this->num_layers);
    detail::add(given, "bidirectional", this->bidirectional, bool(false));
    detail::add(given, "mode", this->mode);
    detail::add(given, "state_outputs", this->state_outputs, bool(false));
    detail::add(given, "projection_size", this->projection_size, std::optional<int64_t>(std::nullopt));
    detail::add(given, "lstm_state_clip_min", this->lstm_state_clip_min, std::optional<double>(std::nullopt));
    detail::add(given, "lstm_state_clip_max", this->lstm_state_clip_max, std::optional<double>(std::nullopt));
    detail::add(given, "use_sequence_length", this->use_sequence_length, bool(false));
    return given;
  }
};
// LSTM layers over a sequence of uint8; parameters and outputs are those of RNN.
inline Outputs quantized_rnn(const Array& data, const Array& parameters, const Array& state, const Array& state_cell,
    const Array& data_scale, const Array& data_shift, const ContribQuantizedRnnParams& p, const Into& out = {}) {
  return invoke("_contrib_quantized_rnn", {data, parameters, state, state_cell, data_scale, data_shift}, p.attributes(),
      out);
}

struct ContribRequantizeParams {
  // dtype of the output; auto: uint8 if min_calib_range is not negative. One of: auto, int8, uint8.
  std::string out_type = "int8";
  std::optional<double> min_calib_range = std::nullopt;  // Minimum value; None: minimum of data.
  std::optional<double> max_calib_range = std::nullopt;  // Maximum value; None: maximum of data.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "out_type", this->out_type, std::string("int8"));
    detail::add(given, "min_calib_range", this->min_calib_range, std::optional<double>(std::nullopt));
    detail::add(given, "max_calib_range", this->max_calib_range, std::optional<double>(std::nullopt));
    return given;
  }
};
// Quantizes 32-bit integers, for example products of bytes.
inline Outputs requantize(const Array& data, const Array& min_range, const Array& max_range, const
    ContribRequantizeParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_requantize", {data, min_range, max_range}, p.attributes(), out);
}

struct ContribRmsNormParams {
  int64_t axis = -1;  // Axis to normalize along.
  double eps = 1e-05;  // Added to the mean square.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, int64_t(-1));
    detail::add(given, "eps", this->eps, double(1e-05));
    return given;
  }
};
// data / sqrt(mean(data^2) + eps) * gamma, with the mean along an axis: LayerNorm without the subtraction of the mean.
// Statistics of 16-bit floats are kept in 32 bits.  Zhang, Sennrich: Root mean square layer normalization, NeurIPS
// 2019.
inline Array rms_norm(const Array& data, const Array& gamma, const ContribRmsNormParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_rms_norm", {data, gamma}, p.attributes(), out);
}

// Rounds to the nearest integer; the gradient passes unchanged.
inline Array round_ste(const Array& data, const Into& out = {}) {
  return invoke("_contrib_round_ste", {data}, {}, out);
}

// -1, 0 or 1; the gradient passes unchanged.
inline Array sign_ste(const Array& data, const Into& out = {}) {
  return invoke("_contrib_sign_ste", {data}, {}, out);
}

struct ContribWeightOnlyEmbeddingParams {
  Required<int64_t> input_dim;  // Number of rows of weight.
  Required<int64_t> output_dim;  // Length of a row of weight.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "input_dim", this->input_dim);
    detail::add(given, "output_dim", this->output_dim);
    return given;
  }
};
// Embedding with a matrix of bytes that have one scale per row: weight[data] * scale[data]; indices out of range select
// the nearest row.
inline Array weight_only_embedding(const Array& data, const Array& weight, const Array& scale, const
    ContribWeightOnlyEmbeddingParams& p, const Into& out = {}) {
  return invoke("_contrib_weight_only_embedding", {data, weight, scale}, p.attributes(), out);
}

struct ContribWeightOnlyFullyConnectedParams {
  Required<int64_t> num_hidden;  // Number of outputs per row.
  bool no_bias = false;  // Whether the bias input is absent, and its range where a bias has one.
  // Whether all axes of data except the first are merged; otherwise the layer applies to the last axis.
  bool flatten = true;
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "num_hidden", this->num_hidden);
    detail::add(given, "no_bias", this->no_bias, bool(false));
    detail::add(given, "flatten", this->flatten, bool(true));
    return given;
  }
};
// FullyConnected with weights of bytes that have one scale per output: (data weight^T) * scale + bias, summed in
// float32.
inline Array weight_only_fully_connected(const Array& data, const Array& weight, const Array& scale, const
    ContribWeightOnlyFullyConnectedParams& p, const Into& out = {}) {
  return invoke("_contrib_weight_only_fully_connected", {data, weight, scale}, p.attributes(), out);
}
inline Array weight_only_fully_connected(const Array& data, const Array& weight, const Array& scale, const Array& bias,
    const ContribWeightOnlyFullyConnectedParams& p, const Into& out = {}) {
  return invoke("_contrib_weight_only_fully_connected", {data, weight, scale, bias}, p.attributes(), out);
}

}  // namespace hybridnet::cpp::nd::contrib
namespace hybridnet::cpp::nd::internal {

struct AdamwUpdateParams {
  Required<double> lr;  // Learning rate.
  double beta1 = 0.9;  // Decay rate of the mean of gradients.
  double beta2 = 0.999;  // Decay rate of the mean of squared gradients.
  double epsilon = 1e-08;  // Added to the root, against division by zero.
  double wd = 0.0;  // Weight decay: eta * wd * weight is subtracted.
  Required<double> eta;  // Factor of the whole step.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lr", this->lr);
    detail::add(given, "beta1", this->beta1, double(0.9));
    detail::add(given, "beta2", this->beta2, double(0.999));
    detail::add(given, "epsilon", this->epsilon, double(1e-08));
    detail::add(given, "wd", this->wd, double(0.0));
    detail::add(given, "eta", this->eta);
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    return given;
  }
};
// g = clip(rescale_grad * grad); mean and var are running means of g and g * g; weight -= eta * (lr * mean / (sqrt(var)
// + epsilon) + wd * weight)
inline Array adamw_update(const Array& weight, const Array& grad, const Array& mean, const Array& var, const Array&
    rescale_grad, const AdamwUpdateParams& p, const Into& out = {}) {
  return invoke("_adamw_update", {weight, grad, mean, var, rescale_grad}, p.attributes(), out);
}

struct ArangeParams {
  Required<double> start;  // First value; if stop is None, the end, and the first value is 0.
  std::optional<double> stop = std::nullopt;  // End, exclusive.
  double step = 1.0;  // Distance between values; not 0.
  int64_t repeat = 1;  // Number of repetitions of each value.
  bool infer_range = false;  // Whether to infer the number of values from the use of the output.
  HnDType dtype = HN_FLOAT32;  // Dtype of the output.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "start", this->start);
    detail::add(given, "stop", this->stop, std::optional<double>(std::nullopt));
    detail::add(given, "step", this->step, double(1.0));
    detail::add(given, "repeat", this->repeat, int64_t(1));
    detail::add(given, "infer_range", this->infer_range, bool(false));
    detail::add(given, "dtype", this->dtype, HnDType(HN_FLOAT32));
    return given;
  }
};
// Evenly spaced values from start, inclusive, to stop, exclusive.
inline Array arange(const ArangeParams& p, const Into& out = {}) {
  return invoke("_arange", {}, p.attributes(), out);
}

// Copies the input.
inline Array copy(const Array& data, const Into& out = {}) {
  return invoke("_copy", {data}, {}, out);
}

struct DivScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// data / scalar. Integers: rounded toward zero.
inline Array div_scalar(const Array& data, const DivScalarParams& p = {}, const Into& out = {}) {
  return invoke("_div_scalar", {data}, p.attributes(), out);
}

// 1 where lhs == rhs, else 0.
inline Array equal(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("_equal", {lhs, rhs}, {}, out);
}

struct EqualScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// 1 where data == scalar, else 0.
inline Array equal_scalar(const Array& data, const EqualScalarParams& p = {}, const Into& out = {}) {
  return invoke("_equal_scalar", {data}, p.attributes(), out);
}

struct EyeParams {
  Required<int64_t> N;  // Number of rows.
  int64_t M = 0;  // Number of columns; 0: the number of rows.
  int64_t k = 0;  // Index of the diagonal: 0 the main one, positive above, negative below.
  HnDType dtype = HN_FLOAT32;  // Dtype of the output.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "N", this->N);
    detail::add(given, "M", this->M, int64_t(0));
    detail::add(given, "k", this->k, int64_t(0));
    detail::add(given, "dtype", this->dtype, HnDType(HN_FLOAT32));
    return given;
  }
};
// A matrix of zeros with ones on a diagonal.
inline Array eye(const EyeParams& p, const Into& out = {}) {
  return invoke("_eye", {}, p.attributes(), out);
}

struct FullParams {
  Required<std::vector<int64_t>> shape;  // Shape of the output.
  HnDType dtype = HN_FLOAT32;  // Dtype of the output.
  Required<double> value;  // Value of every element.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "shape", this->shape);
    detail::add(given, "dtype", this->dtype, HnDType(HN_FLOAT32));
    detail::add(given, "value", this->value);
    return given;
  }
};
// A tensor of one value.
inline Array full(const FullParams& p, const Into& out = {}) {
  return invoke("_full", {}, p.attributes(), out);
}

// lhs + rhs, the sum of the gradients of several uses.
inline Array grad_add(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("_grad_add", {lhs, rhs}, {}, out);
}

// 1 where lhs > rhs, else 0.
inline Array greater(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("_greater", {lhs, rhs}, {}, out);
}

// 1 where lhs >= rhs, else 0.
inline Array greater_equal(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("_greater_equal", {lhs, rhs}, {}, out);
}

struct GreaterEqualScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// 1 where data >= scalar, else 0.
inline Array greater_equal_scalar(const Array& data, const GreaterEqualScalarParams& p = {}, const Into& out = {}) {
  return invoke("_greater_equal_scalar", {data}, p.attributes(), out);
}

struct GreaterScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// 1 where data > scalar, else 0.
inline Array greater_scalar(const Array& data, const GreaterScalarParams& p = {}, const Into& out = {}) {
  return invoke("_greater_scalar", {data}, p.attributes(), out);
}

struct HistogramParams {
  // Number of bins of equal width; None: the second input holds the edges.
  std::optional<int64_t> bin_cnt = std::nullopt;
  std::vector<double> range = {};  // (low, high), for bin_cnt.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "bin_cnt", this->bin_cnt, std::optional<int64_t>(std::nullopt));
    detail::add(given, "range", this->range, std::vector<double>({}));
    return given;
  }
};
// Counts the values of data that fall into each bin; the last bin includes its upper edge.
inline Outputs histogram(const Array& data, const HistogramParams& p = {}, const Into& out = {}) {
  return invoke("_histogram", {data}, p.attributes(), out);
}
inline Outputs histogram(const Array& data, const Array& bins, const HistogramParams& p = {}, const Into& out = {}) {
  return invoke("_histogram", {data, bins}, p.attributes(), out);
}

// sqrt(lhs^2 + rhs^2) without overflow.
inline Array hypot(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("_hypot", {lhs, rhs}, {}, out);
}

struct HypotScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// sqrt(data^2 + scalar^2) without overflow.
inline Array hypot_scalar(const Array& data, const HypotScalarParams& p = {}, const Into& out = {}) {
  return invoke("_hypot_scalar", {data}, p.attributes(), out);
}

// lhs unchanged; its shape and dtype are those of rhs, whichever of the two is known.
inline Array identity_with_attr_like_rhs(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("_identity_with_attr_like_rhs", {lhs, rhs}, {}, out);
}

// 1 where lhs < rhs, else 0.
inline Array lesser(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("_lesser", {lhs, rhs}, {}, out);
}

// 1 where lhs <= rhs, else 0.
inline Array lesser_equal(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("_lesser_equal", {lhs, rhs}, {}, out);
}

struct LesserEqualScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// 1 where data <= scalar, else 0.
inline Array lesser_equal_scalar(const Array& data, const LesserEqualScalarParams& p = {}, const Into& out = {}) {
  return invoke("_lesser_equal_scalar", {data}, p.attributes(), out);
}

struct LesserScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// 1 where data < scalar, else 0.
inline Array lesser_scalar(const Array& data, const LesserScalarParams& p = {}, const Into& out = {}) {
  return invoke("_lesser_scalar", {data}, p.attributes(), out);
}

struct LinspaceParams {
  Required<double> start;  // First value.
  Required<double> stop;  // Last value; without endpoint, the value after the last.
  Required<int64_t> num;  // Number of values.
  bool endpoint = true;  // Whether stop is the last value.
  HnDType dtype = HN_FLOAT32;  // Dtype of the output.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "start", this->start);
    detail::add(given, "stop", this->stop);
    detail::add(given, "num", this->num);
    detail::add(given, "endpoint", this->endpoint, bool(true));
    detail::add(given, "dtype", this->dtype, HnDType(HN_FLOAT32));
    return given;
  }
};
// num evenly spaced values from start to stop.
inline Array linspace(const LinspaceParams& p, const Into& out = {}) {
  return invoke("_linspace", {}, p.attributes(), out);
}

// 1 where both are not 0.
inline Array logical_and(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("_logical_and", {lhs, rhs}, {}, out);
}

struct LogicalAndScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// 1 where data and scalar are both not 0.
inline Array logical_and_scalar(const Array& data, const LogicalAndScalarParams& p = {}, const Into& out = {}) {
  return invoke("_logical_and_scalar", {data}, p.attributes(), out);
}

// 1 where either is not 0.
inline Array logical_or(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("_logical_or", {lhs, rhs}, {}, out);
}

struct LogicalOrScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// 1 where data or scalar is not 0.
inline Array logical_or_scalar(const Array& data, const LogicalOrScalarParams& p = {}, const Into& out = {}) {
  return invoke("_logical_or_scalar", {data}, p.attributes(), out);
}

// 1 where exactly one is not 0.
inline Array logical_xor(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("_logical_xor", {lhs, rhs}, {}, out);
}

struct LogicalXorScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// 1 where exactly one of data and scalar is not 0.
inline Array logical_xor_scalar(const Array& data, const LogicalXorScalarParams& p = {}, const Into& out = {}) {
  return invoke("_logical_xor_scalar", {data}, p.attributes(), out);
}

// The larger element; NaN if either is NaN.
inline Array maximum(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("_maximum", {lhs, rhs}, {}, out);
}

struct MaximumScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// The larger of data and scalar.
inline Array maximum_scalar(const Array& data, const MaximumScalarParams& p = {}, const Into& out = {}) {
  return invoke("_maximum_scalar", {data}, p.attributes(), out);
}

// The smaller element; NaN if either is NaN.
inline Array minimum(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("_minimum", {lhs, rhs}, {}, out);
}

struct MinimumScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// The smaller of data and scalar.
inline Array minimum_scalar(const Array& data, const MinimumScalarParams& p = {}, const Into& out = {}) {
  return invoke("_minimum_scalar", {data}, p.attributes(), out);
}

struct MinusScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// data - scalar.
inline Array minus_scalar(const Array& data, const MinusScalarParams& p = {}, const Into& out = {}) {
  return invoke("_minus_scalar", {data}, p.attributes(), out);
}

// Remainder of lhs / rhs with the sign of rhs; 0 where rhs is 0.
inline Array mod(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("_mod", {lhs, rhs}, {}, out);
}

struct ModScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// Remainder of data / scalar with the sign of scalar; 0 for scalar 0.
inline Array mod_scalar(const Array& data, const ModScalarParams& p = {}, const Into& out = {}) {
  return invoke("_mod_scalar", {data}, p.attributes(), out);
}

struct MpAdamwUpdateParams {
  Required<double> lr;  // Learning rate.
  double beta1 = 0.9;  // Decay rate of the mean of gradients.
  double beta2 = 0.999;  // Decay rate of the mean of squared gradients.
  double epsilon = 1e-08;  // Added to the root, against division by zero.
  double wd = 0.0;  // Weight decay: eta * wd * weight is subtracted.
  Required<double> eta;  // Factor of the whole step.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lr", this->lr);
    detail::add(given, "beta1", this->beta1, double(0.9));
    detail::add(given, "beta2", this->beta2, double(0.999));
    detail::add(given, "epsilon", this->epsilon, double(1e-08));
    detail::add(given, "wd", this->wd, double(0.0));
    detail::add(given, "eta", this->eta);
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    return given;
  }
};
// _adamw_update on a float32 copy of the weight; the weight is the rounded copy.
inline Array mp_adamw_update(const Array& weight, const Array& grad, const Array& mean, const Array& var, const Array&
    weight32, const Array& rescale_grad, const MpAdamwUpdateParams& p, const Into& out = {}) {
  return invoke("_mp_adamw_update", {weight, grad, mean, var, weight32, rescale_grad}, p.attributes(), out);
}

struct MulScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// data * scalar.
inline Array mul_scalar(const Array& data, const MulScalarParams& p = {}, const Into& out = {}) {
  return invoke("_mul_scalar", {data}, p.attributes(), out);
}

struct MultiAdamwUpdateParams {
  Required<std::vector<double>> lrs;  // Learning rates, one per tensor.
  double beta1 = 0.9;  // Decay rate of the mean of gradients.
  double beta2 = 0.999;  // Decay rate of the mean of squared gradients.
  double epsilon = 1e-08;  // Added to the root, against division by zero.
  Required<std::vector<double>> wds;  // Weight decays, one per tensor.
  Required<std::vector<double>> etas;  // Factors of the whole steps, one per tensor.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  int64_t num_weights = 1;  // Number of tensors updated.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lrs", this->lrs);
    detail::add(given, "beta1", this->beta1, double(0.9));
    detail::add(given, "beta2", this->beta2, double(0.999));
    detail::add(given, "epsilon", this->epsilon, double(1e-08));
    detail::add(given, "wds", this->wds);
    detail::add(given, "etas", this->etas);
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    detail::add(given, "num_weights", this->num_weights, int64_t(1));
    return given;
  }
};
// _adamw_update of several tensors at once.
inline Outputs multi_adamw_update(const std::vector<Array>& data, const MultiAdamwUpdateParams& p, const Into& out = {})
    {
  return invoke("_multi_adamw_update", data, p.attributes(), out);
}

struct MultiLambUpdateParams {
  Required<std::vector<double>> learning_rates;  // Learning rates, one per tensor.
  double beta1 = 0.9;  // Decay rate of the mean of gradients.
  double beta2 = 0.999;  // Decay rate of the mean of squared gradients.
  double epsilon = 1e-06;  // Added to the root, against division by zero.
  bool bias_correction = true;  // Whether the bias of the moments is corrected.
  Required<std::vector<double>> wds;  // Weight decays, one per tensor.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  double lower_bound = -1.0;  // Lower bound of the norm of the weight; negative: no bound.
  double upper_bound = -1.0;  // Upper bound of the norm of the weight; negative: no bound.
  Required<std::vector<int64_t>> step_count;  // Number of this update of each tensor, from 1.
  int64_t num_tensors = 1;  // Number of tensors updated.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "learning_rates", this->learning_rates);
    detail::add(given, "beta1", this->beta1, double(0.9));
    detail::add(given, "beta2", this->beta2, double(0.999));
    detail::add(given, "epsilon", this->epsilon, double(1e-06));
    detail::add(given, "bias_correction", this->bias_correction, bool(true));
    detail::add(given, "wds", this->wds);
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    detail::add(given, "lower_bound", this->lower_bound, double(-1.0));
    detail::add(given, "upper_bound", this->upper_bound, double(-1.0));
    detail::add(given, "step_count", this->step_count);
    detail::add(given, "num_tensors", this->num_tensors, int64_t(1));
    return given;
  }
};
// LAMB updates of several tensors at once.
inline Outputs multi_lamb_update(const std::vector<Array>& data, const MultiLambUpdateParams& p, const Into& out = {}) {
  return invoke("_multi_lamb_update", data, p.attributes(), out);
}

struct MultiMpAdamwUpdateParams {
  Required<std::vector<double>> lrs;  // Learning rates, one per tensor.
  double beta1 = 0.9;  // Decay rate of the mean of gradients.
  double beta2 = 0.999;  // Decay rate of the mean of squared gradients.
  double epsilon = 1e-08;  // Added to the root, against division by zero.
  Required<std::vector<double>> wds;  // Weight decays, one per tensor.
  Required<std::vector<double>> etas;  // Factors of the whole steps, one per tensor.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  int64_t num_weights = 1;  // Number of tensors updated.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lrs", this->lrs);
    detail::add(given, "beta1", this->beta1, double(0.9));
    detail::add(given, "beta2", this->beta2, double(0.999));
    detail::add(given, "epsilon", this->epsilon, double(1e-08));
    detail::add(given, "wds", this->wds);
    detail::add(given, "etas", this->etas);
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    detail::add(given, "num_weights", this->num_weights, int64_t(1));
    return given;
  }
};
// _adamw_update of several tensors at once, on float32 copies of the weights.
inline Outputs multi_mp_adamw_update(const std::vector<Array>& data, const MultiMpAdamwUpdateParams& p, const Into& out
    = {}) {
  return invoke("_multi_mp_adamw_update", data, p.attributes(), out);
}

struct MultiMpLambUpdateParams {
  Required<std::vector<double>> learning_rates;  // Learning rates, one per tensor.
  double beta1 = 0.9;  // Decay rate of the mean of gradients.
  double beta2 = 0.999;  // Decay rate of the mean of squared gradients.
  double epsilon = 1e-06;  // Added to the root, against division by zero.
  bool bias_correction = true;  // Whether the bias of the moments is corrected.
  Required<std::vector<double>> wds;  // Weight decays, one per tensor.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  double lower_bound = -1.0;  // Lower bound of the norm of the weight; negative: no bound.
  double upper_bound = -1.0;  // Upper bound of the norm of the weight; negative: no bound.
  Required<std::vector<int64_t>> step_count;  // Number of this update of each tensor, from 1.
  int64_t num_tensors = 1;  // Number of tensors updated.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "learning_rates", this->learning_rates);
    detail::add(given, "beta1", this->beta1, double(0.9));
    detail::add(given, "beta2", this->beta2, double(0.999));
    detail::add(given, "epsilon", this->epsilon, double(1e-06));
    detail::add(given, "bias_correction", this->bias_correction, bool(true));
    detail::add(given, "wds", this->wds);
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    detail::add(given, "lower_bound", this->lower_bound, double(-1.0));
    detail::add(given, "upper_bound", this->upper_bound, double(-1.0));
    detail::add(given, "step_count", this->step_count);
    detail::add(given, "num_tensors", this->num_tensors, int64_t(1));
    return given;
  }
};
// LAMB updates of several tensors at once, on float32 copies of the weights.
inline Outputs multi_mp_lamb_update(const std::vector<Array>& data, const MultiMpLambUpdateParams& p, const Into& out =
    {}) {
  return invoke("_multi_mp_lamb_update", data, p.attributes(), out);
}

// 1 where lhs != rhs, else 0.
inline Array not_equal(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("_not_equal", {lhs, rhs}, {}, out);
}

struct NotEqualScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// 1 where data != scalar, else 0.
inline Array not_equal_scalar(const Array& data, const NotEqualScalarParams& p = {}, const Into& out = {}) {
  return invoke("_not_equal_scalar", {data}, p.attributes(), out);
}

struct OnesParams {
  std::vector<int64_t> shape = {};  // Shape of the output.
  HnDType dtype = HN_FLOAT32;  // Dtype of the output.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "shape", this->shape, std::vector<int64_t>({}));
    detail::add(given, "dtype", this->dtype, HnDType(HN_FLOAT32));
    return given;
  }
};
// A tensor of ones.
inline Array ones(const OnesParams& p = {}, const Into& out = {}) {
  return invoke("_ones", {}, p.attributes(), out);
}

struct PlusScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// data + scalar.
inline Array plus_scalar(const Array& data, const PlusScalarParams& p = {}, const Into& out = {}) {
  return invoke("_plus_scalar", {data}, p.attributes(), out);
}

// lhs to the power of rhs. Integers wrap around; 1 / lhs^-rhs below 0.
inline Array power(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("_power", {lhs, rhs}, {}, out);
}

struct PowerScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// data to the power of scalar.
inline Array power_scalar(const Array& data, const PowerScalarParams& p = {}, const Into& out = {}) {
  return invoke("_power_scalar", {data}, p.attributes(), out);
}

struct RavelMultiIndexParams {
  Required<std::vector<int64_t>> shape;  // Shape of the tensor that the indices belong to; its first size may be -1.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "shape", this->shape);
    return given;
  }
};
// Tuples of indices, one per column, as flat indices into a tensor of the given shape.
inline Array ravel_multi_index(const Array& data, const RavelMultiIndexParams& p, const Into& out = {}) {
  return invoke("_ravel_multi_index", {data}, p.attributes(), out);
}

struct RdivScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// scalar / data. Integers: rounded toward zero, 0 where data is 0.
inline Array rdiv_scalar(const Array& data, const RdivScalarParams& p = {}, const Into& out = {}) {
  return invoke("_rdiv_scalar", {data}, p.attributes(), out);
}

struct RminusScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// scalar - data.
inline Array rminus_scalar(const Array& data, const RminusScalarParams& p = {}, const Into& out = {}) {
  return invoke("_rminus_scalar", {data}, p.attributes(), out);
}

struct RmodScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// Remainder of scalar / data with the sign of data; 0 where data is 0.
inline Array rmod_scalar(const Array& data, const RmodScalarParams& p = {}, const Into& out = {}) {
  return invoke("_rmod_scalar", {data}, p.attributes(), out);
}

struct RnnParamConcatParams {
  int64_t dim = 1;  // The axis along which inputs are joined.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "dim", this->dim, int64_t(1));
    return given;
  }
};
// Joins flattened parameters of a recurrent layer; one or two unknown sizes are inferred from the output.
inline Array rnn_param_concat(const std::vector<Array>& data, const RnnParamConcatParams& p = {}, const Into& out = {})
    {
  return invoke("_rnn_param_concat", data, p.attributes(), out);
}

struct RpowerScalarParams {
  double scalar = 1.0;  // The number.
  bool is_int = true;  // False: an integer array produces float64 instead of its dtype.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    detail::add(given, "is_int", this->is_int, bool(true));
    return given;
  }
};
// scalar to the power of data.
inline Array rpower_scalar(const Array& data, const RpowerScalarParams& p = {}, const Into& out = {}) {
  return invoke("_rpower_scalar", {data}, p.attributes(), out);
}

struct ScatterSetNdParams {
  Required<std::vector<int64_t>> shape;  // Shape of the output.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "shape", this->shape);
    return given;
  }
};
// lhs with the slices at the positions of tuples replaced by rhs; if tuples repeat, the last one is kept.
inline Array scatter_set_nd(const Array& lhs, const Array& rhs, const Array& indices, const ScatterSetNdParams& p, const
    Into& out = {}) {
  return invoke("_scatter_set_nd", {lhs, rhs, indices}, p.attributes(), out);
}

// The slices of data along its first axis in random order, every order equally likely.
inline Array shuffle(const Array& data, const Into& out = {}) {
  return invoke("_shuffle", {data}, {}, out);
}

struct SliceAssignParams {
  // First index per axis; negative counts from the end; None: the start.
  Required<std::vector<std::optional<int64_t>>> begin;
  Required<std::vector<std::optional<int64_t>>> end;  // End per axis, exclusive; None: to the end.
  std::vector<std::optional<int64_t>> step = {};  // Step per axis; None: 1.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "begin", this->begin);
    detail::add(given, "end", this->end);
    detail::add(given, "step", this->step, std::vector<std::optional<int64_t>>({}));
    return given;
  }
};
// lhs with the slice selected by begin, end and step replaced by rhs.
inline Array slice_assign(const Array& lhs, const Array& rhs, const SliceAssignParams& p, const Into& out = {}) {
  return invoke("_slice_assign", {lhs, rhs}, p.attributes(), out);
}

struct SliceAssignScalarParams {
  double scalar = 0.0;  // The value to write.
  // First index per axis; negative counts from the end; None: the start.
  Required<std::vector<std::optional<int64_t>>> begin;
  Required<std::vector<std::optional<int64_t>>> end;  // End per axis, exclusive; None: to the end.
  std::vector<std::optional<int64_t>> step = {};  // Step per axis; None: 1.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(0.0));
    detail::add(given, "begin", this->begin);
    detail::add(given, "end", this->end);
    detail::add(given, "step", this->step, std::vector<std::optional<int64_t>>({}));
    return given;
  }
};
// data with the slice selected by begin, end and step set to a scalar.
inline Array slice_assign_scalar(const Array& data, const SliceAssignScalarParams& p, const Into& out = {}) {
  return invoke("_slice_assign_scalar", {data}, p.attributes(), out);
}

struct SparseAdagradUpdateParams {
  Required<double> lr;  // Learning rate.
  double epsilon = 1e-07;  // Added under the root, against division by zero.
  double wd = 0.0;  // Weight decay: lr * wd * weight is subtracted separately.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lr", this->lr);
    detail::add(given, "epsilon", this->epsilon, double(1e-07));
    detail::add(given, "wd", this->wd, double(0.0));
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    return given;
  }
};
// g = clip(rescale_grad * grad); history += g * g; weight -= lr * (g / sqrt(history + epsilon) + wd * weight)
inline Array sparse_adagrad_update(const Array& weight, const Array& grad, const Array& history, const
    SparseAdagradUpdateParams& p, const Into& out = {}) {
  return invoke("_sparse_adagrad_update", {weight, grad, history}, p.attributes(), out);
}

// data with the rows in indices; all other rows are zero.
inline Array sparse_retain(const Array& data, const Array& indices, const Into& out = {}) {
  return invoke("_sparse_retain", {data, indices}, {}, out);
}

struct SplitV2Params {
  Required<std::vector<int64_t>> indices;  // First index of each part, the first is 0. Ignored with sections.
  int64_t axis = 1;  // The axis to split.
  bool squeeze_axis = false;  // Whether to remove the axis of parts of size 1.
  int64_t sections = 0;  // Number of parts; if it does not divide the size, earlier parts are larger by one.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "indices", this->indices);
    detail::add(given, "axis", this->axis, int64_t(1));
    detail::add(given, "squeeze_axis", this->squeeze_axis, bool(false));
    detail::add(given, "sections", this->sections, int64_t(0));
    return given;
  }
};
// Splits data along an axis at indices, or into sections.
inline Outputs split_v2(const Array& data, const SplitV2Params& p, const Into& out = {}) {
  return invoke("_split_v2", {data}, p.attributes(), out);
}

struct SquareSumParams {
  // Axis or axes to reduce; negative ones count from the end; None or () reduces all.
  OptionalInts axis = std::nullopt;
  bool keepdims = false;  // Keep reduced axes with size 1.
  bool exclude = false;  // Whether to reduce the axes that are not listed.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, OptionalInts(std::nullopt));
    detail::add(given, "keepdims", this->keepdims, bool(false));
    detail::add(given, "exclude", this->exclude, bool(false));
    return given;
  }
};
// Sum of squares over axes.
inline Array square_sum(const Array& data, const SquareSumParams& p = {}, const Into& out = {}) {
  return invoke("_square_sum", {data}, p.attributes(), out);
}

struct UnravelIndexParams {
  Required<std::vector<int64_t>> shape;  // Shape of the tensor that the indices belong to; its first size may be -1.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "shape", this->shape);
    return given;
  }
};
// Flat indices into a tensor of the given shape as tuples of indices, one per column.
inline Array unravel_index(const Array& data, const UnravelIndexParams& p, const Into& out = {}) {
  return invoke("_unravel_index", {data}, p.attributes(), out);
}

// data unchanged; writes value into state.
inline Array write_state(const Array& data, const Array& value, const Array& state, const Into& out = {}) {
  return invoke("_write_state", {data, value, state}, {}, out);
}

struct ZerosParams {
  std::vector<int64_t> shape = {};  // Shape of the output.
  HnDType dtype = HN_FLOAT32;  // Dtype of the output.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "shape", this->shape, std::vector<int64_t>({}));
    detail::add(given, "dtype", this->dtype, HnDType(HN_FLOAT32));
    return given;
  }
};
// A tensor of zeros.
inline Array zeros(const ZerosParams& p = {}, const Into& out = {}) {
  return invoke("_zeros", {}, p.attributes(), out);
}

struct ZerosWithoutDtypeParams {
  Required<std::vector<int64_t>> shape;  // Shape of the output.
  int64_t dtype = -1;  // Code of the dtype; -1: the dtype by the use of the output, else float32.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "shape", this->shape);
    detail::add(given, "dtype", this->dtype, int64_t(-1));
    return given;
  }
};
// A tensor of zeros whose dtype may be inferred from its use.
inline Array zeros_without_dtype(const ZerosWithoutDtypeParams& p, const Into& out = {}) {
  return invoke("_zeros_without_dtype", {}, p.attributes(), out);
}

}  // namespace hybridnet::cpp::nd::internal
namespace hybridnet::cpp::nd {

struct ActivationParams {
  Required<std::string> act_type;  // The activation function. One of: relu, sigmoid, softrelu, softsign, tanh.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "act_type", this->act_type);
    return given;
  }
};
// Applies relu, sigmoid, softrelu (log(1 + e^x)), softsign (x / (1 + |x|)) or tanh.
inline Array Activation(const Array& data, const ActivationParams& p, const Into& out = {}) {
  return invoke("Activation", {data}, p.attributes(), out);
}

struct BatchNormParams {
  double eps = 0.0010000000474974513;  // Added to the variance.
  double momentum = 0.8999999761581421;  // Factor of the old moving statistics.
  bool fix_gamma = true;  // Whether gamma is treated as 1 and has no gradient.
  bool use_global_stats = false;  // Whether the moving statistics are used in training, too.
  bool output_mean_var = false;  // Whether mean and var are outputs, too.
  int64_t axis = 1;  // Axis of the channels.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "eps", this->eps, double(0.0010000000474974513));
    detail::add(given, "momentum", this->momentum, double(0.8999999761581421));
    detail::add(given, "fix_gamma", this->fix_gamma, bool(true));
    detail::add(given, "use_global_stats", this->use_global_stats, bool(false));
    detail::add(given, "output_mean_var", this->output_mean_var, bool(false));
    detail::add(given, "axis", this->axis, int64_t(1));
    return given;
  }
};
// Normalizes each channel to mean 0 and variance 1 (biased), then scales by gamma and shifts by beta. In training the
// statistics are those of the batch, and moving = momentum * moving + (1 - momentum) * batch.
inline Outputs BatchNorm(const Array& data, const Array& gamma, const Array& beta, const Array& moving_mean, const
    Array& moving_var, const BatchNormParams& p = {}, const Into& out = {}) {
  return invoke("BatchNorm", {data, gamma, beta, moving_mean, moving_var}, p.attributes(), out);
}

// Images read at points by bilinear interpolation. Along each axis -1 is the center of the first pixel and 1 the center
// of the last; values outside the image are zero.
inline Array BilinearSampler(const Array& data, const Array& grid, const Into& out = {}) {
  return invoke("BilinearSampler", {data, grid}, {}, out);
}

// Copies the input; stops the gradient.
inline Array BlockGrad(const Array& data, const Into& out = {}) {
  return invoke("BlockGrad", {data}, {}, out);
}

struct CTCLossParams {
  bool use_data_lengths = false;  // Whether the input data_lengths is present; otherwise every example has all steps.
  // Whether the input label_lengths is present; otherwise labels end before their first padding: 0 with blank_label
  // first, -1 with blank_label last.
  bool use_label_lengths = false;
  std::string blank_label = "first";  // Index of the blank symbol: the first or the last. One of: first, last.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "use_data_lengths", this->use_data_lengths, bool(false));
    detail::add(given, "use_label_lengths", this->use_label_lengths, bool(false));
    detail::add(given, "blank_label", this->blank_label, std::string("first"));
    return given;
  }
};
// -log of the probability of a label under all alignments with a sequence: connectionist temporal classification. The
// softmax of data is included. A label that needs more steps than data has gets loss 0.
inline Array CTCLoss(const Array& data, const Array& label, const CTCLossParams& p = {}, const Into& out = {}) {
  return invoke("CTCLoss", {data, label}, p.attributes(), out);
}
inline Array CTCLoss(const Array& data, const Array& label, const Array& data_lengths, const CTCLossParams& p = {},
    const Into& out = {}) {
  return invoke("CTCLoss", {data, label, data_lengths}, p.attributes(), out);
}
inline Array CTCLoss(const Array& data, const Array& label, const Array& data_lengths, const Array& label_lengths, const
    CTCLossParams& p = {}, const Into& out = {}) {
  return invoke("CTCLoss", {data, label, data_lengths, label_lengths}, p.attributes(), out);
}

struct CastParams {
  Required<HnDType> dtype;  // Dtype of the output.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "dtype", this->dtype);
    return given;
  }
};
// Converts to another dtype. Floating to integer rounds toward zero; values that do not fit wrap around. Values beyond
// int64 are clamped to its limits first, and NaN becomes 0. To bool: anything but 0 is true.
inline Array Cast(const Array& data, const CastParams& p, const Into& out = {}) {
  return invoke("Cast", {data}, p.attributes(), out);
}

struct ConcatParams {
  int64_t dim = 1;  // The axis along which inputs are joined.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "dim", this->dim, int64_t(1));
    return given;
  }
};
// Joins tensors along an existing axis.
inline Array Concat(const std::vector<Array>& data, const ConcatParams& p = {}, const Into& out = {}) {
  return invoke("Concat", data, p.attributes(), out);
}

struct ConvolutionParams {
  Required<std::vector<int64_t>> kernel;  // Window: (w,), (h, w) or (d, h, w).
  std::vector<int64_t> stride = {};  // Strides of the window; empty: 1 everywhere.
  std::vector<int64_t> dilate = {};  // Distance between taps; empty: 1 everywhere.
  std::vector<int64_t> pad = {};  // Zeros added on both sides; empty: none.
  Required<int64_t> num_filter;  // Number of output channels.
  int64_t num_group = 1;  // Number of groups into which channels are split; each group is convolved separately.
  bool no_bias = false;  // Whether the bias input is absent.
  // Order of the axes of data, weight and output; None: channels second. One of: NCW, NCHW, NCDHW, NWC, NHWC, NDHWC.
  std::optional<std::string> layout = std::nullopt;
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "kernel", this->kernel);
    detail::add(given, "stride", this->stride, std::vector<int64_t>({}));
    detail::add(given, "dilate", this->dilate, std::vector<int64_t>({}));
    detail::add(given, "pad", this->pad, std::vector<int64_t>({}));
    detail::add(given, "num_filter", this->num_filter);
    detail::add(given, "num_group", this->num_group, int64_t(1));
    detail::add(given, "no_bias", this->no_bias, bool(false));
    detail::add(given, "layout", this->layout, std::optional<std::string>(std::nullopt));
    return given;
  }
};
// Slides num_filter kernels over data and sums products: out[n, o, p] = bias[o] + sum over channels i and taps q of
// data[n, i, p * stride + q * dilate - pad] * weight[o, i, q].
inline Array Convolution(const Array& data, const Array& weight, const ConvolutionParams& p, const Into& out = {}) {
  return invoke("Convolution", {data, weight}, p.attributes(), out);
}
inline Array Convolution(const Array& data, const Array& weight, const Array& bias, const ConvolutionParams& p, const
    Into& out = {}) {
  return invoke("Convolution", {data, weight, bias}, p.attributes(), out);
}

struct CorrelationParams {
  int64_t kernel_size = 1;  // Side of a patch; odd.
  int64_t max_displacement = 1;  // Maximum displacement of compared patches.
  int64_t stride1 = 1;  // Stride of patches of data1.
  int64_t stride2 = 1;  // Stride of displacements.
  int64_t pad_size = 0;  // Width of the zero padding around both images.
  bool is_multiply = true;  // Whether to compute mean products; else mean absolute differences.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "kernel_size", this->kernel_size, int64_t(1));
    detail::add(given, "max_displacement", this->max_displacement, int64_t(1));
    detail::add(given, "stride1", this->stride1, int64_t(1));
    detail::add(given, "stride2", this->stride2, int64_t(1));
    detail::add(given, "pad_size", this->pad_size, int64_t(0));
    detail::add(given, "is_multiply", this->is_multiply, bool(true));
    return given;
  }
};
// Mean products, or mean absolute differences, of patches of data1 and displaced patches of data2.
inline Array Correlation(const Array& data1, const Array& data2, const CorrelationParams& p = {}, const Into& out = {})
    {
  return invoke("Correlation", {data1, data2}, p.attributes(), out);
}

struct CropParams {
  std::vector<int64_t> offset = {0, 0};  // First row and column that are kept.
  std::vector<int64_t> h_w = {0, 0};  // Height and width that are kept, if there is one input.
  bool center_crop = false;  // Whether to crop at the center instead of at offset.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "offset", this->offset, std::vector<int64_t>({0, 0}));
    detail::add(given, "h_w", this->h_w, std::vector<int64_t>({0, 0}));
    detail::add(given, "center_crop", this->center_crop, bool(false));
    return given;
  }
};
// Crops images to h_w, or to the height and width of a second tensor.
inline Array Crop(const std::vector<Array>& data, const CropParams& p = {}, const Into& out = {}) {
  return invoke("Crop", data, p.attributes(), out);
}

struct DeconvolutionParams {
  Required<std::vector<int64_t>> kernel;  // Window: (w,), (h, w) or (d, h, w).
  std::vector<int64_t> stride = {};  // Strides of the window; empty: 1 everywhere.
  std::vector<int64_t> dilate = {};  // Distance between taps; empty: 1 everywhere.
  std::vector<int64_t> pad = {};  // Zeros added on both sides; empty: none.
  Required<int64_t> num_filter;  // Number of output channels.
  int64_t num_group = 1;  // Number of groups into which channels are split; each group is convolved separately.
  bool no_bias = true;  // Whether the bias input is absent.
  // Order of the axes of data, weight and output; None: channels second. One of: NCW, NCHW, NCDHW, NWC, NHWC, NDHWC.
  std::optional<std::string> layout = std::nullopt;
  std::vector<int64_t> adj = {};  // Elements added at the end of the output, less than stride; empty: none.
  // Spatial sizes of the output, instead of pad and adj; empty: sizes follow from pad and adj.
  std::vector<int64_t> target_shape = {};
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "kernel", this->kernel);
    detail::add(given, "stride", this->stride, std::vector<int64_t>({}));
    detail::add(given, "dilate", this->dilate, std::vector<int64_t>({}));
    detail::add(given, "pad", this->pad, std::vector<int64_t>({}));
    detail::add(given, "num_filter", this->num_filter);
    detail::add(given, "num_group", this->num_group, int64_t(1));
    detail::add(given, "no_bias", this->no_bias, bool(true));
    detail::add(given, "layout", this->layout, std::optional<std::string>(std::nullopt));
    detail::add(given, "adj", this->adj, std::vector<int64_t>({}));
    detail::add(given, "target_shape", this->target_shape, std::vector<int64_t>({}));
    return given;
  }
};
// Transposed convolution: each element of data adds its multiple of the kernels to the output, stride apart: out[n, o,
// p * stride + q * dilate - pad] += data[n, i, p] * weight[i, o, q], plus bias[o].
inline Array Deconvolution(const Array& data, const Array& weight, const DeconvolutionParams& p, const Into& out = {}) {
  return invoke("Deconvolution", {data, weight}, p.attributes(), out);
}
inline Array Deconvolution(const Array& data, const Array& weight, const Array& bias, const DeconvolutionParams& p,
    const Into& out = {}) {
  return invoke("Deconvolution", {data, weight, bias}, p.attributes(), out);
}

struct DropoutParams {
  double p_ = 0.5;  // Probability that an element becomes 0.
  // training: the identity outside of training; always: drops elements in both. One of: training, always.
  std::string mode = "training";
  std::vector<int64_t> axes = {};  // Axes along which all elements share one decision.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "p", this->p_, double(0.5));
    detail::add(given, "mode", this->mode, std::string("training"));
    detail::add(given, "axes", this->axes, std::vector<int64_t>({}));
    return given;
  }
};
// In training, sets elements to 0 with probability p and divides the others by 1 - p; the identity otherwise.
// Srivastava et al.: Dropout: a simple way to prevent neural networks from overfitting, JMLR 15 (2014).
inline Array Dropout(const Array& data, const DropoutParams& p = {}, const Into& out = {}) {
  return invoke("Dropout", {data}, p.attributes(), out);
}

struct EmbeddingParams {
  Required<int64_t> input_dim;  // Number of rows of weight.
  Required<int64_t> output_dim;  // Length of a row of weight.
  HnDType dtype = HN_FLOAT32;  // Dtype of weight if nothing else determines it.
  bool sparse_grad = false;  // Requests a row_sparse gradient of weight; the storage of its buffer decides.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "input_dim", this->input_dim);
    detail::add(given, "output_dim", this->output_dim);
    detail::add(given, "dtype", this->dtype, HnDType(HN_FLOAT32));
    detail::add(given, "sparse_grad", this->sparse_grad, bool(false));
    return given;
  }
};
// Rows of weight, selected by data; indices out of range select the nearest row.
inline Array Embedding(const Array& data, const Array& weight, const EmbeddingParams& p, const Into& out = {}) {
  return invoke("Embedding", {data, weight}, p.attributes(), out);
}

// Merges all dimensions except the first into one.
inline Array Flatten(const Array& data, const Into& out = {}) {
  return invoke("Flatten", {data}, {}, out);
}

struct FullyConnectedParams {
  Required<int64_t> num_hidden;  // Number of outputs per row.
  bool no_bias = false;  // Whether the bias input is absent.
  // Whether all axes of data except the first are merged; otherwise the layer applies to the last axis.
  bool flatten = true;
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "num_hidden", this->num_hidden);
    detail::add(given, "no_bias", this->no_bias, bool(false));
    detail::add(given, "flatten", this->flatten, bool(true));
    return given;
  }
};
// Affine map of each row: data weight^T + bias.
inline Array FullyConnected(const Array& data, const Array& weight, const FullyConnectedParams& p, const Into& out = {})
    {
  return invoke("FullyConnected", {data, weight}, p.attributes(), out);
}
inline Array FullyConnected(const Array& data, const Array& weight, const Array& bias, const FullyConnectedParams& p,
    const Into& out = {}) {
  return invoke("FullyConnected", {data, weight, bias}, p.attributes(), out);
}

struct GridGeneratorParams {
  // affine: data holds 2 x 3 matrices; warp: data holds displacements in pixels. One of: affine, warp.
  Required<std::string> transform_type;
  std::vector<int64_t> target_shape = {0, 0};  // affine: (height, width) of the grid.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "transform_type", this->transform_type);
    detail::add(given, "target_shape", this->target_shape, std::vector<int64_t>({0, 0}));
    return given;
  }
};
// Sampling points for BilinearSampler. affine: matrix * (x, y, 1) for every point of a regular grid from -1 to 1; warp:
// every pixel, displaced.
inline Array GridGenerator(const Array& data, const GridGeneratorParams& p, const Into& out = {}) {
  return invoke("GridGenerator", {data}, p.attributes(), out);
}

struct GroupNormParams {
  int64_t num_groups = 1;  // Number of groups of channels.
  double eps = 1e-05;  // Added to the variance.
  bool output_mean_var = false;  // Whether mean and std are outputs, too.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "num_groups", this->num_groups, int64_t(1));
    detail::add(given, "eps", this->eps, double(1e-05));
    detail::add(given, "output_mean_var", this->output_mean_var, bool(false));
    return given;
  }
};
// Normalizes groups of channels of each example to mean 0 and variance 1, then scales and shifts each group.
inline Outputs GroupNorm(const Array& data, const Array& gamma, const Array& beta, const GroupNormParams& p = {}, const
    Into& out = {}) {
  return invoke("GroupNorm", {data, gamma, beta}, p.attributes(), out);
}

struct IdentityAttachKLSparseRegParams {
  double sparseness_target = 0.1;  // Target of the mean activation.
  double penalty = 0.001;  // Weight of the penalty.
  double momentum = 0.9;  // Momentum of the moving mean.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "sparseness_target", this->sparseness_target, double(0.1));
    detail::add(given, "penalty", this->penalty, double(0.001));
    detail::add(given, "momentum", this->momentum, double(0.9));
    return given;
  }
};
// Copies the input and adds the gradient of a penalty to its gradient: the divergence between a target and the moving
// mean of each unit. For outputs of sigmoid only: the moving mean must lie inside (0, 1).
inline Array IdentityAttachKLSparseReg(const Array& data, const Array& moving_avg, const
    IdentityAttachKLSparseRegParams& p = {}, const Into& out = {}) {
  return invoke("IdentityAttachKLSparseReg", {data, moving_avg}, p.attributes(), out);
}

struct InstanceNormParams {
  double eps = 0.001;  // Added to the variance.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "eps", this->eps, double(0.001));
    return given;
  }
};
// Normalizes each channel of each example to mean 0 and variance 1, then scales and shifts each channel.
inline Array InstanceNorm(const Array& data, const Array& gamma, const Array& beta, const InstanceNormParams& p = {},
    const Into& out = {}) {
  return invoke("InstanceNorm", {data, gamma, beta}, p.attributes(), out);
}

struct L2NormalizationParams {
  double eps = 1e-10;  // Added to the sum of squares.
  // Axes of the norm. instance: all except the first; channel: the second; spatial: the third to the last. One of:
  // instance, channel, spatial.
  std::string mode = "instance";
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "eps", this->eps, double(1e-10));
    detail::add(given, "mode", this->mode, std::string("instance"));
    return given;
  }
};
// Divides by the Euclidean norm over the axes of mode: data / sqrt(sum(data^2) + eps).
inline Array L2Normalization(const Array& data, const L2NormalizationParams& p = {}, const Into& out = {}) {
  return invoke("L2Normalization", {data}, p.attributes(), out);
}

struct LRNParams {
  double alpha = 0.0001;  // Factor of the mean square.
  double beta = 0.75;  // Exponent.
  double knorm = 2.0;  // Added to the scaled mean square.
  Required<int64_t> nsize;  // Channels in the window around each channel; odd.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "alpha", this->alpha, double(0.0001));
    detail::add(given, "beta", this->beta, double(0.75));
    detail::add(given, "knorm", this->knorm, double(2.0));
    detail::add(given, "nsize", this->nsize);
    return given;
  }
};
// Divides by (knorm + alpha / nsize * sum of squares over nsize neighboring channels) ^ beta.
inline Array LRN(const Array& data, const LRNParams& p, const Into& out = {}) {
  return invoke("LRN", {data}, p.attributes(), out);
}

struct LayerNormParams {
  int64_t axis = -1;  // Axis to normalize along.
  double eps = 1e-05;  // Added to the variance.
  bool output_mean_var = false;  // Whether mean and std are outputs, too.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, int64_t(-1));
    detail::add(given, "eps", this->eps, double(1e-05));
    detail::add(given, "output_mean_var", this->output_mean_var, bool(false));
    return given;
  }
};
// Normalizes each row along an axis to mean 0 and variance 1, then scales by gamma and shifts by beta.
inline Outputs LayerNorm(const Array& data, const Array& gamma, const Array& beta, const LayerNormParams& p = {}, const
    Into& out = {}) {
  return invoke("LayerNorm", {data, gamma, beta}, p.attributes(), out);
}

struct LeakyReLUParams {
  std::string act_type = "leaky";  // The activation function. One of: elu, gelu, leaky, prelu, rrelu, selu.
  double slope = 0.25;  // Slope below 0 (leaky), limit -slope at -inf (elu).
  double lower_bound = 0.125;  // Smallest random slope (rrelu).
  double upper_bound = 0.334;  // Largest random slope (rrelu).
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "act_type", this->act_type, std::string("leaky"));
    detail::add(given, "slope", this->slope, double(0.25));
    detail::add(given, "lower_bound", this->lower_bound, double(0.125));
    detail::add(given, "upper_bound", this->upper_bound, double(0.334));
    return given;
  }
};
// Activations with values below 0. For x <= 0: leaky: slope * x; prelu: gamma * x, gamma learned; rrelu: a random slope
// between lower_bound and upper_bound per element in training, their mean otherwise; elu: slope * (e^x - 1); selu:
// scaled elu with fixed constants. For x > 0 these give x (selu: 1.0507 x). gelu: x times the normal distribution
// function of x, for all x.
inline Array LeakyReLU(const Array& data, const LeakyReLUParams& p = {}, const Into& out = {}) {
  return invoke("LeakyReLU", {data}, p.attributes(), out);
}
inline Array LeakyReLU(const Array& data, const Array& gamma, const LeakyReLUParams& p = {}, const Into& out = {}) {
  return invoke("LeakyReLU", {data, gamma}, p.attributes(), out);
}

struct LinearRegressionOutputParams {
  double grad_scale = 1.0;  // Factor of the gradient.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "grad_scale", this->grad_scale, double(1.0));
    return given;
  }
};
// The data itself. Its gradient is that of half the squared distance to the label, divided by the number of outputs per
// example, independent of the output gradient.
inline Array LinearRegressionOutput(const Array& data, const Array& label, const LinearRegressionOutputParams& p = {},
    const Into& out = {}) {
  return invoke("LinearRegressionOutput", {data, label}, p.attributes(), out);
}

struct LogisticRegressionOutputParams {
  double grad_scale = 1.0;  // Factor of the gradient.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "grad_scale", this->grad_scale, double(1.0));
    return given;
  }
};
// sigmoid(data). Its gradient is that of the cross entropy with the label, divided by the number of outputs per
// example, independent of the output gradient.
inline Array LogisticRegressionOutput(const Array& data, const Array& label, const LogisticRegressionOutputParams& p =
    {}, const Into& out = {}) {
  return invoke("LogisticRegressionOutput", {data, label}, p.attributes(), out);
}

struct MAERegressionOutputParams {
  double grad_scale = 1.0;  // Factor of the gradient.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "grad_scale", this->grad_scale, double(1.0));
    return given;
  }
};
// The data itself. Its gradient is that of the absolute distance to the label, divided by the number of outputs per
// example, independent of the output gradient.
inline Array MAERegressionOutput(const Array& data, const Array& label, const MAERegressionOutputParams& p = {}, const
    Into& out = {}) {
  return invoke("MAERegressionOutput", {data, label}, p.attributes(), out);
}

struct MakeLossParams {
  double grad_scale = 1.0;  // The gradient of every element.
  double valid_thresh = 0.0;  // Elements greater than this are valid (normalization='valid').
  // batch: the gradient is divided by the size of the first axis; valid: by the number of valid elements. One of:
  // batch, null, valid.
  std::string normalization = "null";
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "grad_scale", this->grad_scale, double(1.0));
    detail::add(given, "valid_thresh", this->valid_thresh, double(0.0));
    detail::add(given, "normalization", this->normalization, std::string("null"));
    return given;
  }
};
// Copies the input and starts a backward pass with a constant gradient.
inline Array MakeLoss(const Array& data, const MakeLossParams& p = {}, const Into& out = {}) {
  return invoke("MakeLoss", {data}, p.attributes(), out);
}

struct PadParams {
  // The padding values: constant_value, the nearest element, or the data mirrored at its edge. One of: constant, edge,
  // reflect.
  Required<std::string> mode;
  Required<std::vector<int64_t>> pad_width;  // Widths before and after each axis: two numbers per axis.
  double constant_value = 0.0;  // Value of the padding in mode constant.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "mode", this->mode);
    detail::add(given, "pad_width", this->pad_width);
    detail::add(given, "constant_value", this->constant_value, double(0.0));
    return given;
  }
};
// Pads data with constants, with its edge values, or with its mirror image.
inline Array Pad(const Array& data, const PadParams& p, const Into& out = {}) {
  return invoke("Pad", {data}, p.attributes(), out);
}

struct PoolingParams {
  std::vector<int64_t> kernel = {};  // Window: (w,), (h, w) or (d, h, w).
  std::string pool_type = "max";  // The reduction of each window. One of: max, avg, sum, lp.
  bool global_pool = false;  // Whether the window is the whole image.
  // valid: windows inside the padded image only; full: also a window over the rest; same: ceil(size / stride) outputs.
  // One of: full, valid, same.
  std::string pooling_convention = "valid";
  std::vector<int64_t> stride = {};  // Strides of the window; empty: 1 everywhere.
  std::vector<int64_t> pad = {};  // Padding on both sides; empty: none.
  std::optional<int64_t> p_value = std::nullopt;  // Exponent of pool_type lp.
  std::optional<bool> count_include_pad = std::nullopt;  // Whether an average includes the padding; None: True.
  // Order of the axes; None: channels second. One of: NCW, NCHW, NCDHW, NWC, NHWC, NDHWC.
  std::optional<std::string> layout = std::nullopt;
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "kernel", this->kernel, std::vector<int64_t>({}));
    detail::add(given, "pool_type", this->pool_type, std::string("max"));
    detail::add(given, "global_pool", this->global_pool, bool(false));
    detail::add(given, "pooling_convention", this->pooling_convention, std::string("valid"));
    detail::add(given, "stride", this->stride, std::vector<int64_t>({}));
    detail::add(given, "pad", this->pad, std::vector<int64_t>({}));
    detail::add(given, "p_value", this->p_value, std::optional<int64_t>(std::nullopt));
    detail::add(given, "count_include_pad", this->count_include_pad, std::optional<bool>(std::nullopt));
    detail::add(given, "layout", this->layout, std::optional<std::string>(std::nullopt));
    return given;
  }
};
// Reduces windows of an image to their maximum, average, sum, or (sum of x^p)^(1/p).
inline Array Pooling(const Array& data, const PoolingParams& p = {}, const Into& out = {}) {
  return invoke("Pooling", {data}, p.attributes(), out);
}

struct RNNParams {
  Required<int64_t> state_size;  // Size of the state of each layer and direction.
  Required<int64_t> num_layers;  // Number of stacked layers.
  bool bidirectional = false;  // Whether each layer also reads the sequence backwards.
  Required<std::string> mode;  // The kind of cell. One of: gru, lstm, rnn_relu, rnn_tanh.
  double p_ = 0.0;  // Dropout probability, in training, of the outputs of each layer but the last.
  bool state_outputs = false;  // Whether the final states are outputs, too.
  // LSTM: size to which the state is projected before it is output and fed back.
  std::optional<int64_t> projection_size = std::nullopt;
  std::optional<double> lstm_state_clip_min = std::nullopt;  // Lower limit of LSTM cells; requires the upper limit.
  std::optional<double> lstm_state_clip_max = std::nullopt;  // Upper limit of LSTM cells; requires the lower limit.
  bool lstm_state_clip_nan = false;  // Whether clipping replaces NaN by the lower limit.
  bool use_sequence_length = false;  // Whether examples have their own lengths, the last input.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "state_size", this->state_size);
    detail::add(given, "num_layers", this->num_layers);
    detail::add(given, "bidirectional", this->bidirectional, bool(false));
    detail::add(given, "mode", this->mode);
    detail::add(given, "p", this->p_, double(0.0));
    detail::add(given, "state_outputs", this->state_outputs, bool(false));
    detail::add(given, "projection_size", this->projection_size, std::optional<int64_t>(std::nullopt));
    detail::add(given, "lstm_state_clip_min", this->lstm_state_clip_min, std::optional<double>(std::nullopt));
    detail::add(given, "lstm_state_clip_max", this->lstm_state_clip_max, std::optional<double>(std::nullopt));
    detail::add(given, "lstm_state_clip_nan", this->lstm_state_clip_nan, bool(false));
    detail::add(given, "use_sequence_length", this->use_sequence_length, bool(false));
    return given;
  }
};
// Runs layers of recurrent cells over a sequence. Packed parameters: for each layer and direction the weights of the
// input (gates * state_size, inputs), of the state (gates * state_size, state) and of the projection (projection_size,
// state_size); then, in the same order, the biases of input and state. Gates: LSTM i, f, g, o; GRU r, z, n.
// Differentiable twice.
inline Outputs RNN(const Array& data, const Array& parameters, const Array& state, const RNNParams& p, const Into& out =
    {}) {
  return invoke("RNN", {data, parameters, state}, p.attributes(), out);
}
inline Outputs RNN(const Array& data, const Array& parameters, const Array& state, const Array& state_cell, const
    RNNParams& p, const Into& out = {}) {
  return invoke("RNN", {data, parameters, state, state_cell}, p.attributes(), out);
}
inline Outputs RNN(const Array& data, const Array& parameters, const Array& state, const Array& state_cell, const Array&
    sequence_length, const RNNParams& p, const Into& out = {}) {
  return invoke("RNN", {data, parameters, state, state_cell, sequence_length}, p.attributes(), out);
}

struct ROIPoolingParams {
  Required<std::vector<int64_t>> pooled_size;  // (height, width) of the output.
  Required<double> spatial_scale;  // Ratio of the size of data to the size of the image whose coordinates rois use.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "pooled_size", this->pooled_size);
    detail::add(given, "spatial_scale", this->spatial_scale);
    return given;
  }
};
// Maxima of pooled_size windows over each region of interest. Corners are scaled and rounded; a region includes both of
// them and at least one pixel. Empty windows, and regions with an invalid image number, give 0.
inline Array ROIPooling(const Array& data, const Array& rois, const ROIPoolingParams& p, const Into& out = {}) {
  return invoke("ROIPooling", {data, rois}, p.attributes(), out);
}

struct ReshapeParams {
  // Target shape; 0 copies a size, -1 is inferred, -2 copies all the rest, -3 merges two sizes, -4 splits one.
  std::vector<int64_t> shape = {};
  bool reverse = false;  // Whether shape and data's shape are read from the right.
  std::vector<int64_t> target_shape = {};  // Deprecated form of shape; one 0 is inferred.
  bool keep_highest = false;  // With target_shape: whether the first size is that of data.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "shape", this->shape, std::vector<int64_t>({}));
    detail::add(given, "reverse", this->reverse, bool(false));
    detail::add(given, "target_shape", this->target_shape, std::vector<int64_t>({}));
    detail::add(given, "keep_highest", this->keep_highest, bool(false));
    return given;
  }
};
// The same elements, in the same order, with another shape.
inline Array Reshape(const Array& data, const ReshapeParams& p = {}, const Into& out = {}) {
  return invoke("Reshape", {data}, p.attributes(), out);
}

struct SVMOutputParams {
  // Margin of the loss: the label's score should be above it, the other scores below its negative.
  double margin = 1.0;
  double regularization_coefficient = 1.0;  // Factor of the gradient.
  bool use_linear = false;  // Whether the loss is the hinge loss; otherwise its square.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "margin", this->margin, double(1.0));
    detail::add(given, "regularization_coefficient", this->regularization_coefficient, double(1.0));
    detail::add(given, "use_linear", this->use_linear, bool(false));
    return given;
  }
};
// The data itself. Its gradient is that of the hinge loss of every score, or of its square, independent of the output
// gradient.
inline Array SVMOutput(const Array& data, const Array& label, const SVMOutputParams& p = {}, const Into& out = {}) {
  return invoke("SVMOutput", {data, label}, p.attributes(), out);
}

struct SequenceLastParams {
  bool use_sequence_length = false;  // Whether the second input has the lengths; else every sequence has full length.
  int64_t axis = 0;  // The time axis; the other of the first two axes is the batch.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "use_sequence_length", this->use_sequence_length, bool(false));
    detail::add(given, "axis", this->axis, int64_t(0));
    return given;
  }
};
// The last element of each sequence.
inline Array SequenceLast(const Array& data, const SequenceLastParams& p = {}, const Into& out = {}) {
  return invoke("SequenceLast", {data}, p.attributes(), out);
}
inline Array SequenceLast(const Array& data, const Array& sequence_length, const SequenceLastParams& p = {}, const Into&
    out = {}) {
  return invoke("SequenceLast", {data, sequence_length}, p.attributes(), out);
}

struct SequenceMaskParams {
  bool use_sequence_length = false;  // Whether the second input has the lengths; else every sequence has full length.
  double value = 0.0;  // Value written after the end of a sequence.
  int64_t axis = 0;  // The time axis; the other of the first two axes is the batch.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "use_sequence_length", this->use_sequence_length, bool(false));
    detail::add(given, "value", this->value, double(0.0));
    detail::add(given, "axis", this->axis, int64_t(0));
    return given;
  }
};
// Overwrites the elements after the end of each sequence.
inline Array SequenceMask(const Array& data, const SequenceMaskParams& p = {}, const Into& out = {}) {
  return invoke("SequenceMask", {data}, p.attributes(), out);
}
inline Array SequenceMask(const Array& data, const Array& sequence_length, const SequenceMaskParams& p = {}, const Into&
    out = {}) {
  return invoke("SequenceMask", {data, sequence_length}, p.attributes(), out);
}

struct SequenceReverseParams {
  bool use_sequence_length = false;  // Whether the second input has the lengths; else every sequence has full length.
  int64_t axis = 0;  // The time axis: 0.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "use_sequence_length", this->use_sequence_length, bool(false));
    detail::add(given, "axis", this->axis, int64_t(0));
    return given;
  }
};
// Each sequence reversed; elements after its end are unchanged.
inline Array SequenceReverse(const Array& data, const SequenceReverseParams& p = {}, const Into& out = {}) {
  return invoke("SequenceReverse", {data}, p.attributes(), out);
}
inline Array SequenceReverse(const Array& data, const Array& sequence_length, const SequenceReverseParams& p = {}, const
    Into& out = {}) {
  return invoke("SequenceReverse", {data, sequence_length}, p.attributes(), out);
}

struct SliceChannelParams {
  Required<int64_t> num_outputs;  // Number of equal parts.
  int64_t axis = 1;  // The axis to split.
  bool squeeze_axis = false;  // Whether to remove the axis; its size must be num_outputs.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "num_outputs", this->num_outputs);
    detail::add(given, "axis", this->axis, int64_t(1));
    detail::add(given, "squeeze_axis", this->squeeze_axis, bool(false));
    return given;
  }
};
// Splits data into num_outputs equal parts along an axis.
inline Outputs SliceChannel(const Array& data, const SliceChannelParams& p, const Into& out = {}) {
  return invoke("SliceChannel", {data}, p.attributes(), out);
}

struct SoftmaxActivationParams {
  // The axis along which the outputs sum to 1. instance: the last axis; channel: the second. One of: instance, channel.
  std::string mode = "instance";
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "mode", this->mode, std::string("instance"));
    return given;
  }
};
// Softmax over the last axis, or, with mode channel, over the second. The operator softmax is equivalent.
inline Array SoftmaxActivation(const Array& data, const SoftmaxActivationParams& p = {}, const Into& out = {}) {
  return invoke("SoftmaxActivation", {data}, p.attributes(), out);
}

struct SoftmaxOutputParams {
  double grad_scale = 1.0;  // Factor of the gradient.
  double ignore_label = -1.0;  // If use_ignore, rows with this label have no gradient.
  bool multi_output = false;  // Whether softmax is along axis 1, with one label for each position of the other axes.
  bool use_ignore = false;  // Whether rows with ignore_label are ignored; not for labels that are probabilities.
  bool preserve_shape = false;  // Whether softmax is along the last axis; otherwise along all axes except the first.
  // Divisor of the gradient. null: 1; batch: the number of labels, with multi_output the size of the data without
  // channels; valid: the number of labels that are not ignore_label. With multi_output, null divides by the positions
  // of one example. One of: batch, null, valid.
  std::string normalization = "null";
  bool out_grad = false;  // Whether the gradient is multiplied by the output's gradient, which is ignored otherwise.
  // Share of the label's probability that is distributed over the other classes; not with multi_output.
  double smooth_alpha = 0.0;
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "grad_scale", this->grad_scale, double(1.0));
    detail::add(given, "ignore_label", this->ignore_label, double(-1.0));
    detail::add(given, "multi_output", this->multi_output, bool(false));
    detail::add(given, "use_ignore", this->use_ignore, bool(false));
    detail::add(given, "preserve_shape", this->preserve_shape, bool(false));
    detail::add(given, "normalization", this->normalization, std::string("null"));
    detail::add(given, "out_grad", this->out_grad, bool(false));
    detail::add(given, "smooth_alpha", this->smooth_alpha, double(0.0));
    return given;
  }
};
// Softmax for the end of a network. Its gradient is that of the cross entropy with the label, output - label,
// independent of the output gradient (unless out_grad).
inline Array SoftmaxOutput(const Array& data, const Array& label, const SoftmaxOutputParams& p = {}, const Into& out =
    {}) {
  return invoke("SoftmaxOutput", {data, label}, p.attributes(), out);
}

struct SpatialTransformerParams {
  std::vector<int64_t> target_shape = {0, 0};  // (height, width) of the output.
  Required<std::string> transform_type;  // Kind of transformation. One of: affine.
  Required<std::string> sampler_type;  // Kind of interpolation. One of: bilinear.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "target_shape", this->target_shape, std::vector<int64_t>({0, 0}));
    detail::add(given, "transform_type", this->transform_type);
    detail::add(given, "sampler_type", this->sampler_type);
    return given;
  }
};
// Images under affine transformations: BilinearSampler at the grid that GridGenerator computes from loc.
inline Array SpatialTransformer(const Array& data, const Array& loc, const SpatialTransformerParams& p, const Into& out
    = {}) {
  return invoke("SpatialTransformer", {data, loc}, p.attributes(), out);
}

struct SwapAxisParams {
  int64_t dim1 = 0;  // One axis.
  int64_t dim2 = 0;  // The other axis.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "dim1", this->dim1, int64_t(0));
    detail::add(given, "dim2", this->dim2, int64_t(0));
    return given;
  }
};
// Exchanges two axes.
inline Array SwapAxis(const Array& data, const SwapAxisParams& p = {}, const Into& out = {}) {
  return invoke("SwapAxis", {data}, p.attributes(), out);
}

struct UpSamplingParams {
  Required<int64_t> scale;  // Factor of height and width of the first input.
  int64_t num_filter = 0;  // For bilinear: channels of data; optional.
  // nearest: repeats elements; bilinear: a transposed convolution of each channel with a weight that is learned. One
  // of: bilinear, nearest.
  Required<std::string> sample_type;
  // nearest: whether enlarged inputs are joined along the channels or added. One of: concat, sum.
  std::string multi_input_mode = "concat";
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scale", this->scale);
    detail::add(given, "num_filter", this->num_filter, int64_t(0));
    detail::add(given, "sample_type", this->sample_type);
    detail::add(given, "multi_input_mode", this->multi_input_mode, std::string("concat"));
    return given;
  }
};
// Enlarges images by an integer factor.
inline Array UpSampling(const std::vector<Array>& data, const UpSamplingParams& p, const Into& out = {}) {
  return invoke("UpSampling", data, p.attributes(), out);
}

// Absolute value; its gradient at 0 is 0.
inline Array abs(const Array& data, const Into& out = {}) {
  return invoke("abs", {data}, {}, out);
}

struct AdamUpdateParams {
  Required<double> lr;  // Learning rate.
  double beta1 = 0.9;  // Decay rate of the mean of gradients.
  double beta2 = 0.999;  // Decay rate of the mean of squared gradients.
  double epsilon = 1e-08;  // Added to the root, against division by zero.
  double wd = 0.0;  // Weight decay: wd * weight is added to the gradient.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lr", this->lr);
    detail::add(given, "beta1", this->beta1, double(0.9));
    detail::add(given, "beta2", this->beta2, double(0.999));
    detail::add(given, "epsilon", this->epsilon, double(1e-08));
    detail::add(given, "wd", this->wd, double(0.0));
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    return given;
  }
};
// g = clip(rescale_grad * grad + wd * weight); mean and var are running means of g and g * g; weight -= lr * mean /
// (sqrt(var) + epsilon)
inline Array adam_update(const Array& weight, const Array& grad, const Array& mean, const Array& var, const
    AdamUpdateParams& p, const Into& out = {}) {
  return invoke("adam_update", {weight, grad, mean, var}, p.attributes(), out);
}

// Sum of several arrays of equal shape and dtype, in one pass over memory.
inline Array add_n(const std::vector<Array>& args, const Into& out = {}) {
  return invoke("add_n", args, {}, out);
}

struct AllFiniteParams {
  // Accepted for compatibility: the result always describes the given arrays, whatever the output held before.
  bool init_output = true;
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "init_output", this->init_output, bool(true));
    return given;
  }
};
// 1 if no element is infinite or NaN, else 0.
inline Array all_finite(const Array& data, const AllFiniteParams& p = {}, const Into& out = {}) {
  return invoke("all_finite", {data}, p.attributes(), out);
}

struct AmpCastParams {
  Required<HnDType> dtype;  // Dtype of the output.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "dtype", this->dtype);
    return given;
  }
};
// Converts float32, float16 and bfloat16 for mixed precision; other inputs are returned unchanged.
inline Array amp_cast(const Array& data, const AmpCastParams& p, const Into& out = {}) {
  return invoke("amp_cast", {data}, p.attributes(), out);
}

struct AmpMulticastParams {
  bool cast_narrow = false;  // Whether to convert to the narrowest dtype among the inputs instead of the widest.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "cast_narrow", this->cast_narrow, bool(false));
    return given;
  }
};
// Converts floating arrays of 32 and 16 bits to the widest dtype among them; other arrays are returned unchanged.
inline Outputs amp_multicast(const std::vector<Array>& data, const AmpMulticastParams& p = {}, const Into& out = {}) {
  return invoke("amp_multicast", data, p.attributes(), out);
}

// Inverse cosine, in [0, pi]; NaN outside [-1, 1].
inline Array arccos(const Array& data, const Into& out = {}) {
  return invoke("arccos", {data}, {}, out);
}

// Inverse hyperbolic cosine; NaN below 1.
inline Array arccosh(const Array& data, const Into& out = {}) {
  return invoke("arccosh", {data}, {}, out);
}

// Inverse sine, in [-pi/2, pi/2]; NaN outside [-1, 1].
inline Array arcsin(const Array& data, const Into& out = {}) {
  return invoke("arcsin", {data}, {}, out);
}

// Inverse hyperbolic sine.
inline Array arcsinh(const Array& data, const Into& out = {}) {
  return invoke("arcsinh", {data}, {}, out);
}

// Inverse tangent, in [-pi/2, pi/2].
inline Array arctan(const Array& data, const Into& out = {}) {
  return invoke("arctan", {data}, {}, out);
}

// Inverse hyperbolic tangent; NaN outside [-1, 1].
inline Array arctanh(const Array& data, const Into& out = {}) {
  return invoke("arctanh", {data}, {}, out);
}

struct ArgmaxParams {
  std::optional<int64_t> axis = std::nullopt;  // Axis to search; None: all elements in row-major order.
  bool keepdims = false;  // Keep reduced axes with size 1.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, std::optional<int64_t>(std::nullopt));
    detail::add(given, "keepdims", this->keepdims, bool(false));
    return given;
  }
};
// Position of the largest element along an axis: the first of equal elements, the first NaN if there is one. The result
// has the dtype of data, which follows MXNet, but float32 for dtypes of less than 32 bits, which hold few positions.
// Positions above 2^24 are rounded in float32, with a warning.
inline Array argmax(const Array& data, const ArgmaxParams& p = {}, const Into& out = {}) {
  return invoke("argmax", {data}, p.attributes(), out);
}

// argmax along axis 1.
inline Array argmax_channel(const Array& data, const Into& out = {}) {
  return invoke("argmax_channel", {data}, {}, out);
}

struct ArgminParams {
  std::optional<int64_t> axis = std::nullopt;  // Axis to search; None: all elements in row-major order.
  bool keepdims = false;  // Keep reduced axes with size 1.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, std::optional<int64_t>(std::nullopt));
    detail::add(given, "keepdims", this->keepdims, bool(false));
    return given;
  }
};
// Position of the smallest element along an axis: the first of equal elements, the first NaN if there is one. The
// result has the dtype of data, which follows MXNet, but float32 for dtypes of less than 32 bits, which hold few
// positions. Positions above 2^24 are rounded in float32, with a warning.
inline Array argmin(const Array& data, const ArgminParams& p = {}, const Into& out = {}) {
  return invoke("argmin", {data}, p.attributes(), out);
}

struct ArgsortParams {
  std::optional<int64_t> axis = -1;  // The axis to sort along; None: data is flattened.
  bool is_ascend = true;  // Whether the smallest elements come first.
  HnDType dtype = HN_FLOAT32;  // Dtype of the indices.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, std::optional<int64_t>(-1));
    detail::add(given, "is_ascend", this->is_ascend, bool(true));
    detail::add(given, "dtype", this->dtype, HnDType(HN_FLOAT32));
    return given;
  }
};
// The indices that sort data along an axis.
inline Array argsort(const Array& data, const ArgsortParams& p = {}, const Into& out = {}) {
  return invoke("argsort", {data}, p.attributes(), out);
}

struct BatchDotParams {
  bool transpose_a = false;  // Whether to transpose the matrices of lhs.
  bool transpose_b = false;  // Whether to transpose the matrices of rhs.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "transpose_a", this->transpose_a, bool(false));
    detail::add(given, "transpose_b", this->transpose_b, bool(false));
    return given;
  }
};
// Matrix products of two stacks of matrices: out[b...] = lhs[b...] rhs[b...].
inline Array batch_dot(const Array& lhs, const Array& rhs, const BatchDotParams& p = {}, const Into& out = {}) {
  return invoke("batch_dot", {lhs, rhs}, p.attributes(), out);
}

// Element indices[i] of each row i.
inline Array batch_take(const Array& a, const Array& indices, const Into& out = {}) {
  return invoke("batch_take", {a, indices}, {}, out);
}

// lhs + rhs with broadcasting.
inline Array broadcast_add(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_add", {lhs, rhs}, {}, out);
}

struct BroadcastAxisParams {
  std::vector<int64_t> axis = {};  // Axes of size 1 to repeat.
  std::vector<int64_t> size = {};  // Number of repetitions along each axis.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, std::vector<int64_t>({}));
    detail::add(given, "size", this->size, std::vector<int64_t>({}));
    return given;
  }
};
// Repeats the input along axes of size 1.
inline Array broadcast_axis(const Array& data, const BroadcastAxisParams& p = {}, const Into& out = {}) {
  return invoke("broadcast_axis", {data}, p.attributes(), out);
}

// lhs / rhs with broadcasting. Integers: rounded toward zero, 0 where rhs is 0.
inline Array broadcast_div(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_div", {lhs, rhs}, {}, out);
}

// 1 where lhs == rhs, else 0, with broadcasting.
inline Array broadcast_equal(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_equal", {lhs, rhs}, {}, out);
}

// 1 where lhs > rhs, else 0, with broadcasting.
inline Array broadcast_greater(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_greater", {lhs, rhs}, {}, out);
}

// 1 where lhs >= rhs, else 0, with broadcasting.
inline Array broadcast_greater_equal(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_greater_equal", {lhs, rhs}, {}, out);
}

// sqrt(lhs^2 + rhs^2) without overflow, with broadcasting.
inline Array broadcast_hypot(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_hypot", {lhs, rhs}, {}, out);
}

// 1 where lhs < rhs, else 0, with broadcasting.
inline Array broadcast_lesser(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_lesser", {lhs, rhs}, {}, out);
}

// 1 where lhs <= rhs, else 0, with broadcasting.
inline Array broadcast_lesser_equal(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_lesser_equal", {lhs, rhs}, {}, out);
}

struct BroadcastLikeParams {
  OptionalInts lhs_axes = std::nullopt;  // Axes of lhs to repeat; None: all axes.
  OptionalInts rhs_axes = std::nullopt;  // Axes of rhs that define the sizes; None: all axes.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lhs_axes", this->lhs_axes, OptionalInts(std::nullopt));
    detail::add(given, "rhs_axes", this->rhs_axes, OptionalInts(std::nullopt));
    return given;
  }
};
// Repeats lhs along its axes of size 1 to the shape of rhs, or to the sizes of some axes of rhs.
inline Array broadcast_like(const Array& lhs, const Array& rhs, const BroadcastLikeParams& p = {}, const Into& out = {})
    {
  return invoke("broadcast_like", {lhs, rhs}, p.attributes(), out);
}

// 1 where both are not 0, with broadcasting.
inline Array broadcast_logical_and(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_logical_and", {lhs, rhs}, {}, out);
}

// 1 where either is not 0, with broadcasting.
inline Array broadcast_logical_or(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_logical_or", {lhs, rhs}, {}, out);
}

// 1 where exactly one is not 0, with broadcasting.
inline Array broadcast_logical_xor(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_logical_xor", {lhs, rhs}, {}, out);
}

// The larger element, with broadcasting; NaN if either is NaN.
inline Array broadcast_maximum(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_maximum", {lhs, rhs}, {}, out);
}

// The smaller element, with broadcasting; NaN if either is NaN.
inline Array broadcast_minimum(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_minimum", {lhs, rhs}, {}, out);
}

// Remainder of lhs / rhs with the sign of rhs, with broadcasting; 0 where rhs is 0.
inline Array broadcast_mod(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_mod", {lhs, rhs}, {}, out);
}

// lhs * rhs with broadcasting.
inline Array broadcast_mul(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_mul", {lhs, rhs}, {}, out);
}

// 1 where lhs != rhs, else 0, with broadcasting.
inline Array broadcast_not_equal(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_not_equal", {lhs, rhs}, {}, out);
}

// lhs to the power of rhs, with broadcasting. Integers wrap around; 1 / lhs^-rhs below 0.
inline Array broadcast_power(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_power", {lhs, rhs}, {}, out);
}

// lhs - rhs with broadcasting.
inline Array broadcast_sub(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_sub", {lhs, rhs}, {}, out);
}

struct BroadcastToParams {
  std::vector<int64_t> shape = {};  // Shape of the output; 0 (or -1 under NumPy shapes) copies the input's size.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "shape", this->shape, std::vector<int64_t>({}));
    return given;
  }
};
// Repeats the input along its axes of size 1 until it has the given shape.
inline Array broadcast_to(const Array& data, const BroadcastToParams& p = {}, const Into& out = {}) {
  return invoke("broadcast_to", {data}, p.attributes(), out);
}

struct CastStorageParams {
  // Storage of the result; in graphs all values are dense. One of: default, row_sparse, csr.
  Required<std::string> stype;
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "stype", this->stype);
    return given;
  }
};
// The same values in another storage type: default, row_sparse or csr.
inline Array cast_storage(const Array& data, const CastStorageParams& p, const Into& out = {}) {
  return invoke("cast_storage", {data}, p.attributes(), out);
}

// Cube root.
inline Array cbrt(const Array& data, const Into& out = {}) {
  return invoke("cbrt", {data}, {}, out);
}

// Rounds up to an integer.
inline Array ceil(const Array& data, const Into& out = {}) {
  return invoke("ceil", {data}, {}, out);
}

struct ClipParams {
  Required<double> a_min;  // Smallest value of the output.
  Required<double> a_max;  // Largest value of the output.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "a_min", this->a_min);
    detail::add(given, "a_max", this->a_max);
    return given;
  }
};
// Limits values to [a_min, a_max]; NaN is kept.
inline Array clip(const Array& data, const ClipParams& p, const Into& out = {}) {
  return invoke("clip", {data}, p.attributes(), out);
}

struct Col2imParams {
  Required<std::vector<int64_t>> output_size;  // Size of the image.
  Required<std::vector<int64_t>> kernel;  // Size of the kernel along every axis of the image, for 1 to 3 axes.
  std::vector<int64_t> stride = {};  // Strides of the kernel; () is 1.
  std::vector<int64_t> dilate = {};  // Distances between kernel points; () is 1.
  std::vector<int64_t> pad = {};  // Width of the zero padding on each side of the image; () is 0.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "output_size", this->output_size);
    detail::add(given, "kernel", this->kernel);
    detail::add(given, "stride", this->stride, std::vector<int64_t>({}));
    detail::add(given, "dilate", this->dilate, std::vector<int64_t>({}));
    detail::add(given, "pad", this->pad, std::vector<int64_t>({}));
    return given;
  }
};
// Images from the columns of im2col: values of the same pixel are added.
inline Array col2im(const Array& data, const Col2imParams& p, const Into& out = {}) {
  return invoke("col2im", {data}, p.attributes(), out);
}

// Cosine; x in radians.
inline Array cos(const Array& data, const Into& out = {}) {
  return invoke("cos", {data}, {}, out);
}

// Hyperbolic cosine.
inline Array cosh(const Array& data, const Into& out = {}) {
  return invoke("cosh", {data}, {}, out);
}

// Radians to degrees.
inline Array degrees(const Array& data, const Into& out = {}) {
  return invoke("degrees", {data}, {}, out);
}

struct DepthToSpaceParams {
  Required<int64_t> block_size;  // Edge of a block of pixels.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "block_size", this->block_size);
    return given;
  }
};
// Rearranges channels to blocks of pixels: element (n, (r, s, c), h, w) becomes (n, c, h * b + r, w * b + s).
inline Array depth_to_space(const Array& data, const DepthToSpaceParams& p, const Into& out = {}) {
  return invoke("depth_to_space", {data}, p.attributes(), out);
}

struct DiagParams {
  int64_t k = 0;  // Index of the diagonal: 0 the main one, positive above, negative below.
  int64_t axis1 = 0;  // The axis of rows. Not for vectors.
  int64_t axis2 = 1;  // The axis of columns. Not for vectors.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "k", this->k, int64_t(0));
    detail::add(given, "axis1", this->axis1, int64_t(0));
    detail::add(given, "axis2", this->axis2, int64_t(1));
    return given;
  }
};
// The diagonals of a tensor, or a matrix with a vector on its diagonal.
inline Array diag(const Array& data, const DiagParams& p = {}, const Into& out = {}) {
  return invoke("diag", {data}, p.attributes(), out);
}

struct DotParams {
  bool transpose_a = false;  // Whether to contract the first axis of lhs instead of its last.
  bool transpose_b = false;  // Whether to contract the last axis of rhs instead of its first.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "transpose_a", this->transpose_a, bool(false));
    detail::add(given, "transpose_b", this->transpose_b, bool(false));
    return given;
  }
};
// Product of two arrays: out[i..., j...] = sum over x of lhs[i..., x] * rhs[x, j...]. It is the matrix product of
// matrices and the inner product of vectors (shape (1,), under NumPy shapes ()).
inline Array dot(const Array& lhs, const Array& rhs, const DotParams& p = {}, const Into& out = {}) {
  return invoke("dot", {lhs, rhs}, p.attributes(), out);
}

// lhs + rhs; equal shapes.
inline Array elemwise_add(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("elemwise_add", {lhs, rhs}, {}, out);
}

// lhs / rhs; equal shapes. Integers: rounded toward zero, 0 where rhs is 0.
inline Array elemwise_div(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("elemwise_div", {lhs, rhs}, {}, out);
}

// lhs * rhs; equal shapes.
inline Array elemwise_mul(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("elemwise_mul", {lhs, rhs}, {}, out);
}

// lhs - rhs; equal shapes.
inline Array elemwise_sub(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("elemwise_sub", {lhs, rhs}, {}, out);
}

// Error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.
inline Array erf(const Array& data, const Into& out = {}) {
  return invoke("erf", {data}, {}, out);
}

// Inverse of the error function; NaN outside [-1, 1].
inline Array erfinv(const Array& data, const Into& out = {}) {
  return invoke("erfinv", {data}, {}, out);
}

// e to the power of x.
inline Array exp(const Array& data, const Into& out = {}) {
  return invoke("exp", {data}, {}, out);
}

struct ExpandDimsParams {
  Required<int64_t> axis;  // Position of the new axis in the output, in [-ndim-1, ndim].
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis);
    return given;
  }
};
// Inserts an axis of size 1.
inline Array expand_dims(const Array& data, const ExpandDimsParams& p, const Into& out = {}) {
  return invoke("expand_dims", {data}, p.attributes(), out);
}

// e to the power of x, minus 1, exact for small x.
inline Array expm1(const Array& data, const Into& out = {}) {
  return invoke("expm1", {data}, {}, out);
}

// lhs with lhs[i, rhs[i]] replaced by mhs[i].
inline Array fill_element_0index(const Array& lhs, const Array& mhs, const Array& rhs, const Into& out = {}) {
  return invoke("fill_element_0index", {lhs, mhs, rhs}, {}, out);
}

// Rounds toward zero to an integer.
inline Array fix(const Array& data, const Into& out = {}) {
  return invoke("fix", {data}, {}, out);
}

// Rounds down to an integer.
inline Array floor(const Array& data, const Into& out = {}) {
  return invoke("floor", {data}, {}, out);
}

struct FtmlUpdateParams {
  Required<double> lr;  // Learning rate.
  double beta1 = 0.6;  // Decay rate of the leader.
  double beta2 = 0.999;  // Decay rate of the squared gradients.
  double epsilon = 1e-08;  // Added to the root, against division by zero.
  Required<int64_t> t;  // Number of this update, from 1.
  double wd = 0.0;  // Weight decay: wd * weight is added to the gradient.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_grad = -1.0;  // Gradients are clipped to [-clip_grad, clip_grad]; negative: not clipped.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lr", this->lr);
    detail::add(given, "beta1", this->beta1, double(0.6));
    detail::add(given, "beta2", this->beta2, double(0.999));
    detail::add(given, "epsilon", this->epsilon, double(1e-08));
    detail::add(given, "t", this->t);
    detail::add(given, "wd", this->wd, double(0.0));
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_grad", this->clip_grad, double(-1.0));
    return given;
  }
};
// g = clip(rescale_grad * grad + wd * weight); v is a running mean of g * g; d = (1 - beta1^t) / lr * (sqrt(v / (1 -
// beta2^t)) + epsilon); z = beta1 * z + (1 - beta1) * g - (d - beta1 * d before) * weight; weight = -z / d
inline Array ftml_update(const Array& weight, const Array& grad, const Array& d, const Array& v, const Array& z, const
    FtmlUpdateParams& p, const Into& out = {}) {
  return invoke("ftml_update", {weight, grad, d, v, z}, p.attributes(), out);
}

struct FtrlUpdateParams {
  Required<double> lr;  // Learning rate.
  double lamda1 = 0.01;  // L1 penalty.
  double beta = 1.0;  // Reduces the learning rate of elements with few gradients.
  double wd = 0.0;  // Weight decay: wd * weight is added to the gradient.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lr", this->lr);
    detail::add(given, "lamda1", this->lamda1, double(0.01));
    detail::add(given, "beta", this->beta, double(1.0));
    detail::add(given, "wd", this->wd, double(0.0));
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    return given;
  }
};
// g = clip(rescale_grad * grad); z += g - (sqrt(n + g * g) - sqrt(n)) * weight / lr; n += g * g; weight = (sign(z) *
// lamda1 - z) / ((beta + sqrt(n)) / lr + wd) if |z| > lamda1, else 0
inline Array ftrl_update(const Array& weight, const Array& grad, const Array& z, const Array& n, const FtrlUpdateParams&
    p, const Into& out = {}) {
  return invoke("ftrl_update", {weight, grad, z, n}, p.attributes(), out);
}

// Gamma function.
inline Array gamma(const Array& data, const Into& out = {}) {
  return invoke("gamma", {data}, {}, out);
}

// Logarithm of the magnitude of the gamma function.
inline Array gammaln(const Array& data, const Into& out = {}) {
  return invoke("gammaln", {data}, {}, out);
}

// Elements or slices of data selected by tuples: out[y...] = data[indices[0, y...], indices[1, y...], ...].
inline Array gather_nd(const Array& data, const Array& indices, const Into& out = {}) {
  return invoke("gather_nd", {data, indices}, {}, out);
}

struct HardSigmoidParams {
  double alpha = 0.2;  // Slope.
  double beta = 0.5;  // Value at 0.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "alpha", this->alpha, double(0.2));
    detail::add(given, "beta", this->beta, double(0.5));
    return given;
  }
};
// alpha * x + beta, limited to [0, 1].
inline Array hard_sigmoid(const Array& data, const HardSigmoidParams& p = {}, const Into& out = {}) {
  return invoke("hard_sigmoid", {data}, p.attributes(), out);
}

struct Im2colParams {
  Required<std::vector<int64_t>> kernel;  // Size of the kernel along every axis of the image, for 1 to 3 axes.
  std::vector<int64_t> stride = {};  // Strides of the kernel; () is 1.
  std::vector<int64_t> dilate = {};  // Distances between kernel points; () is 1.
  std::vector<int64_t> pad = {};  // Width of the zero padding on each side of the image; () is 0.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "kernel", this->kernel);
    detail::add(given, "stride", this->stride, std::vector<int64_t>({}));
    detail::add(given, "dilate", this->dilate, std::vector<int64_t>({}));
    detail::add(given, "pad", this->pad, std::vector<int64_t>({}));
    return given;
  }
};
// The pixels that every point of a kernel reads, at every position of the kernel.
inline Array im2col(const Array& data, const Im2colParams& p, const Into& out = {}) {
  return invoke("im2col", {data}, p.attributes(), out);
}

// The matrix whose columns are the outer products of the matrices' columns.
inline Array khatri_rao(const std::vector<Array>& args, const Into& out = {}) {
  return invoke("khatri_rao", args, {}, out);
}

struct LambUpdatePhase1Params {
  double beta1 = 0.9;  // Decay rate of the mean of gradients.
  double beta2 = 0.999;  // Decay rate of the mean of squared gradients.
  double epsilon = 1e-06;  // Added to the root, against division by zero.
  Required<int64_t> t;  // Number of this update, from 1.
  bool bias_correction = true;  // Whether the moments' bias is corrected.
  Required<double> wd;  // Weight decay: wd * weight is added to the step.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "beta1", this->beta1, double(0.9));
    detail::add(given, "beta2", this->beta2, double(0.999));
    detail::add(given, "epsilon", this->epsilon, double(1e-06));
    detail::add(given, "t", this->t);
    detail::add(given, "bias_correction", this->bias_correction, bool(true));
    detail::add(given, "wd", this->wd);
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    return given;
  }
};
// Adam's step: g = clip(rescale_grad * grad); mean and var are running means of g and g * g; the result is mean /
// (sqrt(var) + epsilon) + wd * weight, with corrected moments if bias_correction.
inline Array lamb_update_phase1(const Array& weight, const Array& grad, const Array& mean, const Array& var, const
    LambUpdatePhase1Params& p, const Into& out = {}) {
  return invoke("lamb_update_phase1", {weight, grad, mean, var}, p.attributes(), out);
}

struct LambUpdatePhase2Params {
  Required<double> lr;  // Learning rate.
  double lower_bound = -1.0;  // Lower bound of the norm of the weight; negative: no bound.
  double upper_bound = -1.0;  // Upper bound of the norm of the weight; negative: no bound.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lr", this->lr);
    detail::add(given, "lower_bound", this->lower_bound, double(-1.0));
    detail::add(given, "upper_bound", this->upper_bound, double(-1.0));
    return given;
  }
};
// weight -= lr * ratio * g; ratio = r1, clipped to [lower_bound, upper_bound], over r2, or 1 if one of them is 0.
inline Array lamb_update_phase2(const Array& weight, const Array& g, const Array& r1, const Array& r2, const
    LambUpdatePhase2Params& p, const Into& out = {}) {
  return invoke("lamb_update_phase2", {weight, g, r1, r2}, p.attributes(), out);
}

// Natural logarithm.
inline Array log(const Array& data, const Into& out = {}) {
  return invoke("log", {data}, {}, out);
}

// Logarithm to base 10.
inline Array log10(const Array& data, const Into& out = {}) {
  return invoke("log10", {data}, {}, out);
}

// log(1 + x), exact for small x.
inline Array log1p(const Array& data, const Into& out = {}) {
  return invoke("log1p", {data}, {}, out);
}

// Logarithm to base 2.
inline Array log2(const Array& data, const Into& out = {}) {
  return invoke("log2", {data}, {}, out);
}

struct LogSoftmaxParams {
  int64_t axis = -1;  // Axis along which the outputs sum to 1.
  std::optional<double> temperature = std::nullopt;  // Divisor of data; None: 1.
  // Dtype of the output: float16, float32 or float64; None: dtype of data.
  std::optional<HnDType> dtype = std::nullopt;
  std::optional<bool> use_length = false;  // Whether the length input is present.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, int64_t(-1));
    detail::add(given, "temperature", this->temperature, std::optional<double>(std::nullopt));
    detail::add(given, "dtype", this->dtype, std::optional<HnDType>(std::nullopt));
    detail::add(given, "use_length", this->use_length, std::optional<bool>(false));
    return given;
  }
};
// Logarithm of softmax along an axis, computed without underflow.
inline Array log_softmax(const Array& data, const LogSoftmaxParams& p = {}, const Into& out = {}) {
  return invoke("log_softmax", {data}, p.attributes(), out);
}

// 1 where x is 0, else 0.
inline Array logical_not(const Array& data, const Into& out = {}) {
  return invoke("logical_not", {data}, {}, out);
}

// Copies the input and starts a backward pass with a gradient of ones.
inline Array make_loss(const Array& data, const Into& out = {}) {
  return invoke("make_loss", {data}, {}, out);
}

struct MaxParams {
  // Axis or axes to reduce; negative ones count from the end; None or () reduces all.
  OptionalInts axis = std::nullopt;
  bool keepdims = false;  // Keep reduced axes with size 1.
  bool exclude = false;  // Whether to reduce the axes that are not listed.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, OptionalInts(std::nullopt));
    detail::add(given, "keepdims", this->keepdims, bool(false));
    detail::add(given, "exclude", this->exclude, bool(false));
    return given;
  }
};
// Largest element over axes. The result is NaN if any element is NaN.
inline Array max(const Array& data, const MaxParams& p = {}, const Into& out = {}) {
  return invoke("max", {data}, p.attributes(), out);
}

struct MeanParams {
  // Axis or axes to reduce; negative ones count from the end; None or () reduces all.
  OptionalInts axis = std::nullopt;
  bool keepdims = false;  // Keep reduced axes with size 1.
  bool exclude = false;  // Whether to reduce the axes that are not listed.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, OptionalInts(std::nullopt));
    detail::add(given, "keepdims", this->keepdims, bool(false));
    detail::add(given, "exclude", this->exclude, bool(false));
    return given;
  }
};
// Mean over axes.
inline Array mean(const Array& data, const MeanParams& p = {}, const Into& out = {}) {
  return invoke("mean", {data}, p.attributes(), out);
}

struct MinParams {
  // Axis or axes to reduce; negative ones count from the end; None or () reduces all.
  OptionalInts axis = std::nullopt;
  bool keepdims = false;  // Keep reduced axes with size 1.
  bool exclude = false;  // Whether to reduce the axes that are not listed.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, OptionalInts(std::nullopt));
    detail::add(given, "keepdims", this->keepdims, bool(false));
    detail::add(given, "exclude", this->exclude, bool(false));
    return given;
  }
};
// Smallest element over axes. The result is NaN if any element is NaN.
inline Array min(const Array& data, const MinParams& p = {}, const Into& out = {}) {
  return invoke("min", {data}, p.attributes(), out);
}

struct MomentsParams {
  OptionalInts axes = std::nullopt;  // Axes to reduce; None or (): all.
  bool keepdims = false;  // Keep reduced axes with size 1.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axes", this->axes, OptionalInts(std::nullopt));
    detail::add(given, "keepdims", this->keepdims, bool(false));
    return given;
  }
};
// Mean and variance (of the whole population: divided by the number of elements) over axes.
inline Outputs moments(const Array& data, const MomentsParams& p = {}, const Into& out = {}) {
  return invoke("moments", {data}, p.attributes(), out);
}

struct MpLambUpdatePhase1Params {
  double beta1 = 0.9;  // Decay rate of the mean of gradients.
  double beta2 = 0.999;  // Decay rate of the mean of squared gradients.
  double epsilon = 1e-06;  // Added to the root, against division by zero.
  Required<int64_t> t;  // Number of this update, from 1.
  bool bias_correction = true;  // Whether the moments' bias is corrected.
  Required<double> wd;  // Weight decay: wd * weight is added to the step.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "beta1", this->beta1, double(0.9));
    detail::add(given, "beta2", this->beta2, double(0.999));
    detail::add(given, "epsilon", this->epsilon, double(1e-06));
    detail::add(given, "t", this->t);
    detail::add(given, "bias_correction", this->bias_correction, bool(true));
    detail::add(given, "wd", this->wd);
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    return given;
  }
};
// lamb_update_phase1 with float32 moments, step and copy of the weight.
inline Array mp_lamb_update_phase1(const Array& weight, const Array& grad, const Array& mean, const Array& var, const
    Array& weight32, const MpLambUpdatePhase1Params& p, const Into& out = {}) {
  return invoke("mp_lamb_update_phase1", {weight, grad, mean, var, weight32}, p.attributes(), out);
}

struct MpLambUpdatePhase2Params {
  Required<double> lr;  // Learning rate.
  double lower_bound = -1.0;  // Lower bound of the norm of the weight; negative: no bound.
  double upper_bound = -1.0;  // Upper bound of the norm of the weight; negative: no bound.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lr", this->lr);
    detail::add(given, "lower_bound", this->lower_bound, double(-1.0));
    detail::add(given, "upper_bound", this->upper_bound, double(-1.0));
    return given;
  }
};
// lamb_update_phase2 on a float32 copy of the weight; the weight is the rounded copy.
inline Array mp_lamb_update_phase2(const Array& weight, const Array& g, const Array& r1, const Array& r2, const Array&
    weight32, const MpLambUpdatePhase2Params& p, const Into& out = {}) {
  return invoke("mp_lamb_update_phase2", {weight, g, r1, r2, weight32}, p.attributes(), out);
}

struct MpNagMomUpdateParams {
  Required<double> lr;  // Learning rate.
  double momentum = 0.0;  // Factor of the previous step.
  double wd = 0.0;  // Weight decay: wd * weight is added to the gradient.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lr", this->lr);
    detail::add(given, "momentum", this->momentum, double(0.0));
    detail::add(given, "wd", this->wd, double(0.0));
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    return given;
  }
};
// nag_mom_update on a float32 copy of the weight; the weight is the rounded copy.
inline Array mp_nag_mom_update(const Array& weight, const Array& grad, const Array& mom, const Array& weight32, const
    MpNagMomUpdateParams& p, const Into& out = {}) {
  return invoke("mp_nag_mom_update", {weight, grad, mom, weight32}, p.attributes(), out);
}

struct MpSgdMomUpdateParams {
  Required<double> lr;  // Learning rate.
  double momentum = 0.0;  // Factor of the previous step.
  double wd = 0.0;  // Weight decay: wd * weight is added to the gradient.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lr", this->lr);
    detail::add(given, "momentum", this->momentum, double(0.0));
    detail::add(given, "wd", this->wd, double(0.0));
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    return given;
  }
};
// sgd_mom_update on a float32 copy of the weight; the weight is the rounded copy.
inline Array mp_sgd_mom_update(const Array& weight, const Array& grad, const Array& mom, const Array& weight32, const
    MpSgdMomUpdateParams& p, const Into& out = {}) {
  return invoke("mp_sgd_mom_update", {weight, grad, mom, weight32}, p.attributes(), out);
}

struct MpSgdUpdateParams {
  Required<double> lr;  // Learning rate.
  double wd = 0.0;  // Weight decay: wd * weight is added to the gradient.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lr", this->lr);
    detail::add(given, "wd", this->wd, double(0.0));
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    return given;
  }
};
// sgd_update on a float32 copy of the weight; the weight is the rounded copy.
inline Array mp_sgd_update(const Array& weight, const Array& grad, const Array& weight32, const MpSgdUpdateParams& p,
    const Into& out = {}) {
  return invoke("mp_sgd_update", {weight, grad, weight32}, p.attributes(), out);
}

struct MultiAllFiniteParams {
  // Accepted for compatibility: the result always describes the given arrays, whatever the output held before.
  bool init_output = true;
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "init_output", this->init_output, bool(true));
    return given;
  }
};
// 1 if no element is infinite or NaN, else 0.
inline Array multi_all_finite(const std::vector<Array>& data, const MultiAllFiniteParams& p = {}, const Into& out = {})
    {
  return invoke("multi_all_finite", data, p.attributes(), out);
}

struct MultiLarsParams {
  Required<double> eta;  // Trust coefficient.
  Required<double> eps;  // Added to the denominator.
  double rescale_grad = 1.0;  // Factor applied to the gradients.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "eta", this->eta);
    detail::add(given, "eps", this->eps);
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    return given;
  }
};
// Learning rates of LARS: lr * eta * |weight| / (rescale_grad * |grad| + wd * |weight| + eps), or lr if a norm is 0.
inline Array multi_lars(const Array& lrs, const Array& weights_sum_sq, const Array& grads_sum_sq, const Array& wds,
    const MultiLarsParams& p, const Into& out = {}) {
  return invoke("multi_lars", {lrs, weights_sum_sq, grads_sum_sq, wds}, p.attributes(), out);
}

struct MultiMpSgdMomUpdateParams {
  Required<std::vector<double>> lrs;  // Learning rates, one per tensor.
  Required<std::vector<double>> wds;  // Weight decays, one per tensor.
  double momentum = 0.0;  // Factor of the previous step.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  int64_t num_weights = 1;  // Number of tensors updated.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lrs", this->lrs);
    detail::add(given, "wds", this->wds);
    detail::add(given, "momentum", this->momentum, double(0.0));
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    detail::add(given, "num_weights", this->num_weights, int64_t(1));
    return given;
  }
};
// mp_sgd_mom_update of several tensors at once.
inline Outputs multi_mp_sgd_mom_update(const std::vector<Array>& data, const MultiMpSgdMomUpdateParams& p, const Into&
    out = {}) {
  return invoke("multi_mp_sgd_mom_update", data, p.attributes(), out);
}

struct MultiMpSgdUpdateParams {
  Required<std::vector<double>> lrs;  // Learning rates, one per tensor.
  Required<std::vector<double>> wds;  // Weight decays, one per tensor.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  int64_t num_weights = 1;  // Number of tensors updated.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lrs", this->lrs);
    detail::add(given, "wds", this->wds);
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    detail::add(given, "num_weights", this->num_weights, int64_t(1));
    return given;
  }
};
// mp_sgd_update of several tensors at once.
inline Outputs multi_mp_sgd_update(const std::vector<Array>& data, const MultiMpSgdUpdateParams& p, const Into& out =
    {}) {
  return invoke("multi_mp_sgd_update", data, p.attributes(), out);
}

struct MultiSgdMomUpdateParams {
  Required<std::vector<double>> lrs;  // Learning rates, one per tensor.
  Required<std::vector<double>> wds;  // Weight decays, one per tensor.
  double momentum = 0.0;  // Factor of the previous step.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  int64_t num_weights = 1;  // Number of tensors updated.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lrs", this->lrs);
    detail::add(given, "wds", this->wds);
    detail::add(given, "momentum", this->momentum, double(0.0));
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    detail::add(given, "num_weights", this->num_weights, int64_t(1));
    return given;
  }
};
// sgd_mom_update of several tensors at once.
inline Outputs multi_sgd_mom_update(const std::vector<Array>& data, const MultiSgdMomUpdateParams& p, const Into& out =
    {}) {
  return invoke("multi_sgd_mom_update", data, p.attributes(), out);
}

struct MultiSgdUpdateParams {
  Required<std::vector<double>> lrs;  // Learning rates, one per tensor.
  Required<std::vector<double>> wds;  // Weight decays, one per tensor.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  int64_t num_weights = 1;  // Number of tensors updated.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lrs", this->lrs);
    detail::add(given, "wds", this->wds);
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    detail::add(given, "num_weights", this->num_weights, int64_t(1));
    return given;
  }
};
// sgd_update of several tensors at once.
inline Outputs multi_sgd_update(const std::vector<Array>& data, const MultiSgdUpdateParams& p, const Into& out = {}) {
  return invoke("multi_sgd_update", data, p.attributes(), out);
}

// Sum of squares of each array.
inline Array multi_sum_sq(const std::vector<Array>& data, const Into& out = {}) {
  return invoke("multi_sum_sq", data, {}, out);
}

struct NagMomUpdateParams {
  Required<double> lr;  // Learning rate.
  double momentum = 0.0;  // Factor of the previous step.
  double wd = 0.0;  // Weight decay: wd * weight is added to the gradient.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lr", this->lr);
    detail::add(given, "momentum", this->momentum, double(0.0));
    detail::add(given, "wd", this->wd, double(0.0));
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    return given;
  }
};
// mom = momentum * mom - lr * (clip(rescale_grad * grad) + wd * weight); weight changes by mom plus momentum times the
// change of mom.
inline Array nag_mom_update(const Array& weight, const Array& grad, const Array& mom, const NagMomUpdateParams& p, const
    Into& out = {}) {
  return invoke("nag_mom_update", {weight, grad, mom}, p.attributes(), out);
}

struct NanprodParams {
  // Axis or axes to reduce; negative ones count from the end; None or () reduces all.
  OptionalInts axis = std::nullopt;
  bool keepdims = false;  // Keep reduced axes with size 1.
  bool exclude = false;  // Whether to reduce the axes that are not listed.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, OptionalInts(std::nullopt));
    detail::add(given, "keepdims", this->keepdims, bool(false));
    detail::add(given, "exclude", this->exclude, bool(false));
    return given;
  }
};
// Product over axes; NaN counts as 1.
inline Array nanprod(const Array& data, const NanprodParams& p = {}, const Into& out = {}) {
  return invoke("nanprod", {data}, p.attributes(), out);
}

struct NansumParams {
  // Axis or axes to reduce; negative ones count from the end; None or () reduces all.
  OptionalInts axis = std::nullopt;
  bool keepdims = false;  // Keep reduced axes with size 1.
  bool exclude = false;  // Whether to reduce the axes that are not listed.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, OptionalInts(std::nullopt));
    detail::add(given, "keepdims", this->keepdims, bool(false));
    detail::add(given, "exclude", this->exclude, bool(false));
    return given;
  }
};
// Sum over axes; NaN counts as 0.
inline Array nansum(const Array& data, const NansumParams& p = {}, const Into& out = {}) {
  return invoke("nansum", {data}, p.attributes(), out);
}

// -x.
inline Array negative(const Array& data, const Into& out = {}) {
  return invoke("negative", {data}, {}, out);
}

struct NormParams {
  int64_t ord = 2;  // 1: sum of magnitudes; 2: root of the sum of squares.
  OptionalInts axis = std::nullopt;  // Axis or axes of the norm; None or (): all.
  std::optional<HnDType> out_dtype = std::nullopt;  // Dtype of the output; None: dtype of data.
  bool keepdims = false;  // Keep reduced axes with size 1.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "ord", this->ord, int64_t(2));
    detail::add(given, "axis", this->axis, OptionalInts(std::nullopt));
    detail::add(given, "out_dtype", this->out_dtype, std::optional<HnDType>(std::nullopt));
    detail::add(given, "keepdims", this->keepdims, bool(false));
    return given;
  }
};
// L1 or L2 norm over axes.
inline Array norm(const Array& data, const NormParams& p = {}, const Into& out = {}) {
  return invoke("norm", {data}, p.attributes(), out);
}

struct OneHotParams {
  Required<int64_t> depth;  // Length of a row.
  double on_value = 1.0;  // Value at the index.
  double off_value = 0.0;  // Value of all other elements.
  HnDType dtype = HN_FLOAT32;  // Dtype of the output.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "depth", this->depth);
    detail::add(given, "on_value", this->on_value, double(1.0));
    detail::add(given, "off_value", this->off_value, double(0.0));
    detail::add(given, "dtype", this->dtype, HnDType(HN_FLOAT32));
    return given;
  }
};
// Rows of off_value with on_value at the index; an index out of range gives a row of off_value.
inline Array one_hot(const Array& indices, const OneHotParams& p, const Into& out = {}) {
  return invoke("one_hot", {indices}, p.attributes(), out);
}

// Ones of the input's shape and dtype.
inline Array ones_like(const Array& data, const Into& out = {}) {
  return invoke("ones_like", {data}, {}, out);
}

struct PickParams {
  std::optional<int64_t> axis = -1;  // The axis to pick from; None: data is flattened.
  bool keepdims = false;  // Keep the axis with size 1.
  std::string mode = "clip";  // Index out of range: clip to the ends or wrap around. One of: clip, wrap.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, std::optional<int64_t>(-1));
    detail::add(given, "keepdims", this->keepdims, bool(false));
    detail::add(given, "mode", this->mode, std::string("clip"));
    return given;
  }
};
// One element per position of the other axes, selected by index.
inline Array pick(const Array& data, const Array& index, const PickParams& p = {}, const Into& out = {}) {
  return invoke("pick", {data, index}, p.attributes(), out);
}

struct PreloadedMultiMpSgdMomUpdateParams {
  double momentum = 0.0;  // Factor of the previous step.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  int64_t num_weights = 1;  // Number of tensors updated.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "momentum", this->momentum, double(0.0));
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    detail::add(given, "num_weights", this->num_weights, int64_t(1));
    return given;
  }
};
// multi_mp_sgd_mom_update with learning rates and weight decays from tensors.
inline Outputs preloaded_multi_mp_sgd_mom_update(const std::vector<Array>& data, const
    PreloadedMultiMpSgdMomUpdateParams& p = {}, const Into& out = {}) {
  return invoke("preloaded_multi_mp_sgd_mom_update", data, p.attributes(), out);
}

struct PreloadedMultiMpSgdUpdateParams {
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  int64_t num_weights = 1;  // Number of tensors updated.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    detail::add(given, "num_weights", this->num_weights, int64_t(1));
    return given;
  }
};
// multi_mp_sgd_update with learning rates and weight decays from tensors.
inline Outputs preloaded_multi_mp_sgd_update(const std::vector<Array>& data, const PreloadedMultiMpSgdUpdateParams& p =
    {}, const Into& out = {}) {
  return invoke("preloaded_multi_mp_sgd_update", data, p.attributes(), out);
}

struct PreloadedMultiSgdMomUpdateParams {
  double momentum = 0.0;  // Factor of the previous step.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  int64_t num_weights = 1;  // Number of tensors updated.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "momentum", this->momentum, double(0.0));
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    detail::add(given, "num_weights", this->num_weights, int64_t(1));
    return given;
  }
};
// multi_sgd_mom_update with learning rates and weight decays from tensors.
inline Outputs preloaded_multi_sgd_mom_update(const std::vector<Array>& data, const PreloadedMultiSgdMomUpdateParams& p
    = {}, const Into& out = {}) {
  return invoke("preloaded_multi_sgd_mom_update", data, p.attributes(), out);
}

struct PreloadedMultiSgdUpdateParams {
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  int64_t num_weights = 1;  // Number of tensors updated.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    detail::add(given, "num_weights", this->num_weights, int64_t(1));
    return given;
  }
};
// multi_sgd_update with learning rates and weight decays from tensors.
inline Outputs preloaded_multi_sgd_update(const std::vector<Array>& data, const PreloadedMultiSgdUpdateParams& p = {},
    const Into& out = {}) {
  return invoke("preloaded_multi_sgd_update", data, p.attributes(), out);
}

struct ProdParams {
  // Axis or axes to reduce; negative ones count from the end; None or () reduces all.
  OptionalInts axis = std::nullopt;
  bool keepdims = false;  // Keep reduced axes with size 1.
  bool exclude = false;  // Whether to reduce the axes that are not listed.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, OptionalInts(std::nullopt));
    detail::add(given, "keepdims", this->keepdims, bool(false));
    detail::add(given, "exclude", this->exclude, bool(false));
    return given;
  }
};
// Product over axes.
inline Array prod(const Array& data, const ProdParams& p = {}, const Into& out = {}) {
  return invoke("prod", {data}, p.attributes(), out);
}

// Degrees to radians.
inline Array radians(const Array& data, const Into& out = {}) {
  return invoke("radians", {data}, {}, out);
}

// 1 / cube root.
inline Array rcbrt(const Array& data, const Into& out = {}) {
  return invoke("rcbrt", {data}, {}, out);
}

// 1 / x; integers: rounded toward zero, 0 for 0.
inline Array reciprocal(const Array& data, const Into& out = {}) {
  return invoke("reciprocal", {data}, {}, out);
}

// max(x, 0).
inline Array relu(const Array& data, const Into& out = {}) {
  return invoke("relu", {data}, {}, out);
}

struct RepeatParams {
  Required<int64_t> repeats;  // Number of repetitions of each element.
  std::optional<int64_t> axis = std::nullopt;  // Axis along which to repeat; None: data is flattened.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "repeats", this->repeats);
    detail::add(given, "axis", this->axis, std::optional<int64_t>(std::nullopt));
    return given;
  }
};
// Repeats every element, or slice along an axis.
inline Array repeat(const Array& data, const RepeatParams& p, const Into& out = {}) {
  return invoke("repeat", {data}, p.attributes(), out);
}

// Sets arrays to zero in place.
inline Outputs reset_arrays(const std::vector<Array>& data, const Into& out = {}) {
  return invoke("reset_arrays", data, {}, out);
}

struct ReshapeLikeParams {
  std::optional<int64_t> lhs_begin = std::nullopt;  // First axis of lhs that is replaced; None: 0.
  std::optional<int64_t> lhs_end = std::nullopt;  // End of the axes of lhs that are replaced; None: all.
  std::optional<int64_t> rhs_begin = std::nullopt;  // First axis of rhs whose size is used; None: 0.
  std::optional<int64_t> rhs_end = std::nullopt;  // End of the axes of rhs whose sizes are used; None: all.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lhs_begin", this->lhs_begin, std::optional<int64_t>(std::nullopt));
    detail::add(given, "lhs_end", this->lhs_end, std::optional<int64_t>(std::nullopt));
    detail::add(given, "rhs_begin", this->rhs_begin, std::optional<int64_t>(std::nullopt));
    detail::add(given, "rhs_end", this->rhs_end, std::optional<int64_t>(std::nullopt));
    return given;
  }
};
// lhs with the shape of rhs, or with some of its axes replaced by axes of rhs.
inline Array reshape_like(const Array& lhs, const Array& rhs, const ReshapeLikeParams& p = {}, const Into& out = {}) {
  return invoke("reshape_like", {lhs, rhs}, p.attributes(), out);
}

struct ReverseParams {
  Required<std::vector<int64_t>> axis;  // The axes to reverse.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis);
    return given;
  }
};
// Reverses the order of elements along the given axes.
inline Array reverse(const Array& data, const ReverseParams& p, const Into& out = {}) {
  return invoke("reverse", {data}, p.attributes(), out);
}

// Rounds to the nearest integer; halves to the lower one.
inline Array rint(const Array& data, const Into& out = {}) {
  return invoke("rint", {data}, {}, out);
}

struct RmspropUpdateParams {
  Required<double> lr;  // Learning rate.
  double gamma1 = 0.95;  // Decay rate of the running means.
  double epsilon = 1e-08;  // Added under the root, against division by zero.
  double wd = 0.0;  // Weight decay: wd * weight is added to the gradient.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  double clip_weights = -1.0;  // Weights are clipped to [-clip_weights, clip_weights]; negative: not clipped.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lr", this->lr);
    detail::add(given, "gamma1", this->gamma1, double(0.95));
    detail::add(given, "epsilon", this->epsilon, double(1e-08));
    detail::add(given, "wd", this->wd, double(0.0));
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    detail::add(given, "clip_weights", this->clip_weights, double(-1.0));
    return given;
  }
};
// g = clip(rescale_grad * grad + wd * weight); n is a running mean of g * g; weight -= lr * g / sqrt(n + epsilon), then
// clipped to clip_weights.
inline Array rmsprop_update(const Array& weight, const Array& grad, const Array& n, const RmspropUpdateParams& p, const
    Into& out = {}) {
  return invoke("rmsprop_update", {weight, grad, n}, p.attributes(), out);
}

struct RmspropalexUpdateParams {
  Required<double> lr;  // Learning rate.
  double gamma1 = 0.95;  // Decay rate of the running means.
  double gamma2 = 0.9;  // Factor of the previous step.
  double epsilon = 1e-08;  // Added under the root, against division by zero.
  double wd = 0.0;  // Weight decay: wd * weight is added to the gradient.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  double clip_weights = -1.0;  // Weights are clipped to [-clip_weights, clip_weights]; negative: not clipped.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lr", this->lr);
    detail::add(given, "gamma1", this->gamma1, double(0.95));
    detail::add(given, "gamma2", this->gamma2, double(0.9));
    detail::add(given, "epsilon", this->epsilon, double(1e-08));
    detail::add(given, "wd", this->wd, double(0.0));
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    detail::add(given, "clip_weights", this->clip_weights, double(-1.0));
    return given;
  }
};
// rmsprop_update with momentum and the variance n - g * g, where g is a running mean of the gradient: delta = gamma2 *
// delta - lr * gradient / sqrt(n - g * g + epsilon); weight += delta.
inline Array rmspropalex_update(const Array& weight, const Array& grad, const Array& n, const Array& g, const Array&
    delta, const RmspropalexUpdateParams& p, const Into& out = {}) {
  return invoke("rmspropalex_update", {weight, grad, n, g, delta}, p.attributes(), out);
}

// Rounds to the nearest integer; halves away from zero.
inline Array round(const Array& data, const Into& out = {}) {
  return invoke("round", {data}, {}, out);
}

// 1 / sqrt(x).
inline Array rsqrt(const Array& data, const Into& out = {}) {
  return invoke("rsqrt", {data}, {}, out);
}

struct ScatterNdParams {
  Required<std::vector<int64_t>> shape;  // Shape of the output.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "shape", this->shape);
    return given;
  }
};
// Zeros with slices of data at the positions of tuples; if tuples repeat, the last one is kept.
inline Array scatter_nd(const Array& data, const Array& indices, const ScatterNdParams& p, const Into& out = {}) {
  return invoke("scatter_nd", {data, indices}, p.attributes(), out);
}

struct SgdMomUpdateParams {
  Required<double> lr;  // Learning rate.
  double momentum = 0.0;  // Factor of the previous step.
  double wd = 0.0;  // Weight decay: wd * weight is added to the gradient.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lr", this->lr);
    detail::add(given, "momentum", this->momentum, double(0.0));
    detail::add(given, "wd", this->wd, double(0.0));
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    return given;
  }
};
// mom = momentum * mom - lr * (wd * weight + clip(rescale_grad * grad)); weight = weight + mom
inline Array sgd_mom_update(const Array& weight, const Array& grad, const Array& mom, const SgdMomUpdateParams& p, const
    Into& out = {}) {
  return invoke("sgd_mom_update", {weight, grad, mom}, p.attributes(), out);
}

struct SgdUpdateParams {
  Required<double> lr;  // Learning rate.
  double wd = 0.0;  // Weight decay: wd * weight is added to the gradient.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lr", this->lr);
    detail::add(given, "wd", this->wd, double(0.0));
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    return given;
  }
};
// weight = (1 - lr * wd) * weight - lr * clip(rescale_grad * grad)
inline Array sgd_update(const Array& weight, const Array& grad, const SgdUpdateParams& p, const Into& out = {}) {
  return invoke("sgd_update", {weight, grad}, p.attributes(), out);
}

// The shape of data as a tensor.
inline Array shape_array(const Array& data, const Into& out = {}) {
  return invoke("shape_array", {data}, {}, out);
}

// 1 / (1 + e^-x).
inline Array sigmoid(const Array& data, const Into& out = {}) {
  return invoke("sigmoid", {data}, {}, out);
}

// -1, 0 or 1; its gradient is 0.
inline Array sign(const Array& data, const Into& out = {}) {
  return invoke("sign", {data}, {}, out);
}

struct SignsgdUpdateParams {
  Required<double> lr;  // Learning rate.
  double wd = 0.0;  // Weight decay: wd * weight is added to the gradient.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lr", this->lr);
    detail::add(given, "wd", this->wd, double(0.0));
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    return given;
  }
};
// weight = (1 - lr * wd) * weight - lr * sign(grad)
inline Array signsgd_update(const Array& weight, const Array& grad, const SignsgdUpdateParams& p, const Into& out = {})
    {
  return invoke("signsgd_update", {weight, grad}, p.attributes(), out);
}

struct SignumUpdateParams {
  Required<double> lr;  // Learning rate.
  double momentum = 0.0;  // Decay rate of the mean of gradients.
  double wd = 0.0;  // Weight decay: wd * weight is added to the gradient.
  double rescale_grad = 1.0;  // Factor applied to the gradient first.
  double clip_gradient = -1.0;  // Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
  double wd_lh = 0.0;  // Weight decay applied after the sign.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "lr", this->lr);
    detail::add(given, "momentum", this->momentum, double(0.0));
    detail::add(given, "wd", this->wd, double(0.0));
    detail::add(given, "rescale_grad", this->rescale_grad, double(1.0));
    detail::add(given, "clip_gradient", this->clip_gradient, double(-1.0));
    detail::add(given, "wd_lh", this->wd_lh, double(0.0));
    return given;
  }
};
// mom = momentum * mom - (1 - momentum) * (clip(rescale_grad * grad) + wd * weight); weight = (1 - lr * wd_lh) * weight
// + lr * sign(mom)
inline Array signum_update(const Array& weight, const Array& grad, const Array& mom, const SignumUpdateParams& p, const
    Into& out = {}) {
  return invoke("signum_update", {weight, grad, mom}, p.attributes(), out);
}

// Sine; x in radians.
inline Array sin(const Array& data, const Into& out = {}) {
  return invoke("sin", {data}, {}, out);
}

// Hyperbolic sine.
inline Array sinh(const Array& data, const Into& out = {}) {
  return invoke("sinh", {data}, {}, out);
}

// The number of elements of data as a tensor.
inline Array size_array(const Array& data, const Into& out = {}) {
  return invoke("size_array", {data}, {}, out);
}

struct SliceParams {
  // First index per axis; negative counts from the end; None: the start.
  Required<std::vector<std::optional<int64_t>>> begin;
  Required<std::vector<std::optional<int64_t>>> end;  // End per axis, exclusive; None: to the end.
  std::vector<std::optional<int64_t>> step = {};  // Step per axis, negative to walk backwards; None: 1.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "begin", this->begin);
    detail::add(given, "end", this->end);
    detail::add(given, "step", this->step, std::vector<std::optional<int64_t>>({}));
    return given;
  }
};
// Copies the elements selected by begin, end and step, axis by axis.
inline Array slice(const Array& data, const SliceParams& p, const Into& out = {}) {
  return invoke("slice", {data}, p.attributes(), out);
}

struct SliceAxisParams {
  Required<int64_t> axis;  // The axis to slice; negative counts from the end.
  Required<int64_t> begin;  // First index; negative counts from the end.
  Required<std::optional<int64_t>> end;  // End, exclusive; None: to the end.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis);
    detail::add(given, "begin", this->begin);
    detail::add(given, "end", this->end);
    return given;
  }
};
// Copies a range of indices of one axis.
inline Array slice_axis(const Array& data, const SliceAxisParams& p, const Into& out = {}) {
  return invoke("slice_axis", {data}, p.attributes(), out);
}

struct SliceLikeParams {
  std::vector<int64_t> axes = {};  // Axes that are sliced to the sizes of shape_like; empty: all.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axes", this->axes, std::vector<int64_t>({}));
    return given;
  }
};
// The leading part of data with the sizes of shape_like, along all or some axes.
inline Array slice_like(const Array& data, const Array& shape_like, const SliceLikeParams& p = {}, const Into& out = {})
    {
  return invoke("slice_like", {data, shape_like}, p.attributes(), out);
}

struct SmoothL1Params {
  double scalar = 1.0;  // The function is quadratic for |x| < 1 / sigma^2.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "scalar", this->scalar, double(1.0));
    return given;
  }
};
// 0.5 (sigma x)^2 where |x| < 1 / sigma^2, otherwise |x| - 0.5 / sigma^2.
inline Array smooth_l1(const Array& data, const SmoothL1Params& p = {}, const Into& out = {}) {
  return invoke("smooth_l1", {data}, p.attributes(), out);
}

struct SoftmaxParams {
  int64_t axis = -1;  // Axis along which the outputs sum to 1.
  std::optional<double> temperature = std::nullopt;  // Divisor of data; None: 1.
  // Dtype of the output: float16, float32 or float64; None: dtype of data.
  std::optional<HnDType> dtype = std::nullopt;
  std::optional<bool> use_length = false;  // Whether the length input is present.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, int64_t(-1));
    detail::add(given, "temperature", this->temperature, std::optional<double>(std::nullopt));
    detail::add(given, "dtype", this->dtype, std::optional<HnDType>(std::nullopt));
    detail::add(given, "use_length", this->use_length, std::optional<bool>(false));
    return given;
  }
};
// exp(data / temperature), divided by its sum along an axis. With use_length only the first length elements of each row
// take part; the others become 0.
inline Array softmax(const Array& data, const SoftmaxParams& p = {}, const Into& out = {}) {
  return invoke("softmax", {data}, p.attributes(), out);
}
inline Array softmax(const Array& data, const Array& length, const SoftmaxParams& p = {}, const Into& out = {}) {
  return invoke("softmax", {data, length}, p.attributes(), out);
}

// Sum over the batch of -log(softmax(data)[label]), with probabilities of at least 1e-8. A label that is no class has
// probability 0.
inline Array softmax_cross_entropy(const Array& data, const Array& label, const Into& out = {}) {
  return invoke("softmax_cross_entropy", {data, label}, {}, out);
}

struct SoftminParams {
  int64_t axis = -1;  // Axis along which the outputs sum to 1.
  std::optional<double> temperature = std::nullopt;  // Divisor of data; None: 1.
  // Dtype of the output: float16, float32 or float64; None: dtype of data.
  std::optional<HnDType> dtype = std::nullopt;
  std::optional<bool> use_length = false;  // Whether the length input is present.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, int64_t(-1));
    detail::add(given, "temperature", this->temperature, std::optional<double>(std::nullopt));
    detail::add(given, "dtype", this->dtype, std::optional<HnDType>(std::nullopt));
    detail::add(given, "use_length", this->use_length, std::optional<bool>(false));
    return given;
  }
};
// softmax of -data / temperature along an axis.
inline Array softmin(const Array& data, const SoftminParams& p = {}, const Into& out = {}) {
  return invoke("softmin", {data}, p.attributes(), out);
}

// x / (1 + |x|).
inline Array softsign(const Array& data, const Into& out = {}) {
  return invoke("softsign", {data}, {}, out);
}

struct SortParams {
  std::optional<int64_t> axis = -1;  // The axis to sort along; None: data is flattened.
  bool is_ascend = true;  // Whether the smallest elements come first.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, std::optional<int64_t>(-1));
    detail::add(given, "is_ascend", this->is_ascend, bool(true));
    return given;
  }
};
// data sorted along an axis.
inline Array sort(const Array& data, const SortParams& p = {}, const Into& out = {}) {
  return invoke("sort", {data}, p.attributes(), out);
}

struct SpaceToDepthParams {
  Required<int64_t> block_size;  // Edge of a block of pixels.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "block_size", this->block_size);
    return given;
  }
};
// Rearranges blocks of pixels to channels: the inverse of depth_to_space.
inline Array space_to_depth(const Array& data, const SpaceToDepthParams& p, const Into& out = {}) {
  return invoke("space_to_depth", {data}, p.attributes(), out);
}

// Square root; NaN for negative x.
inline Array sqrt(const Array& data, const Into& out = {}) {
  return invoke("sqrt", {data}, {}, out);
}

// x * x.
inline Array square(const Array& data, const Into& out = {}) {
  return invoke("square", {data}, {}, out);
}

struct SqueezeParams {
  OptionalInts axis = std::nullopt;  // Axes of size 1 to remove; None: all of them.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, OptionalInts(std::nullopt));
    return given;
  }
};
// Removes axes of size 1.
inline Array squeeze(const Array& data, const SqueezeParams& p = {}, const Into& out = {}) {
  return invoke("squeeze", {data}, p.attributes(), out);
}

struct StackParams {
  int64_t axis = 0;  // Position of the new axis in the output.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, int64_t(0));
    return given;
  }
};
// Joins tensors of one shape along a new axis.
inline Array stack(const std::vector<Array>& data, const StackParams& p = {}, const Into& out = {}) {
  return invoke("stack", data, p.attributes(), out);
}

struct SumParams {
  // Axis or axes to reduce; negative ones count from the end; None or () reduces all.
  OptionalInts axis = std::nullopt;
  bool keepdims = false;  // Keep reduced axes with size 1.
  bool exclude = false;  // Whether to reduce the axes that are not listed.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, OptionalInts(std::nullopt));
    detail::add(given, "keepdims", this->keepdims, bool(false));
    detail::add(given, "exclude", this->exclude, bool(false));
    return given;
  }
};
// Sum over axes. float32 is summed in float64, integers in int64.
inline Array sum(const Array& data, const SumParams& p = {}, const Into& out = {}) {
  return invoke("sum", {data}, p.attributes(), out);
}

struct TakeParams {
  int64_t axis = 0;  // The indexed axis.
  // Index out of range: clip to the ends, wrap around, or raise an IndexError. One of: clip, raise, wrap.
  std::string mode = "clip";
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, int64_t(0));
    detail::add(given, "mode", this->mode, std::string("clip"));
    return given;
  }
};
// Slices of a along an axis, in the order of indices.
inline Array take(const Array& a, const Array& indices, const TakeParams& p = {}, const Into& out = {}) {
  return invoke("take", {a, indices}, p.attributes(), out);
}

// Tangent; x in radians.
inline Array tan(const Array& data, const Into& out = {}) {
  return invoke("tan", {data}, {}, out);
}

// Hyperbolic tangent.
inline Array tanh(const Array& data, const Into& out = {}) {
  return invoke("tanh", {data}, {}, out);
}

struct TileParams {
  Required<std::vector<int64_t>> reps;  // Number of repetitions along each axis, aligned at the last one.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "reps", this->reps);
    return given;
  }
};
// Repeats data as a whole along its axes.
inline Array tile(const Array& data, const TileParams& p, const Into& out = {}) {
  return invoke("tile", {data}, p.attributes(), out);
}

struct TopkParams {
  std::optional<int64_t> axis = -1;  // The axis to select along; None: data is flattened.
  int64_t k = 1;  // Number of elements; below 1: all elements.
  // The outputs: values, their indices, values and indices, or a mask of ones like data. One of: value, indices, mask,
  // both.
  std::string ret_typ = "indices";
  bool is_ascend = false;  // Whether to select the smallest instead of the largest elements.
  HnDType dtype = HN_FLOAT32;  // Dtype of the indices.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axis", this->axis, std::optional<int64_t>(-1));
    detail::add(given, "k", this->k, int64_t(1));
    detail::add(given, "ret_typ", this->ret_typ, std::string("indices"));
    detail::add(given, "is_ascend", this->is_ascend, bool(false));
    detail::add(given, "dtype", this->dtype, HnDType(HN_FLOAT32));
    return given;
  }
};
// The k largest, or smallest, elements along an axis.
inline Outputs topk(const Array& data, const TopkParams& p = {}, const Into& out = {}) {
  return invoke("topk", {data}, p.attributes(), out);
}

struct TransposeParams {
  std::vector<int64_t> axes = {};  // Axis i of the output is axis axes[i] of data; empty: reversed order.
  Attributes attributes() const {
    Attributes given;
    detail::add(given, "axes", this->axes, std::vector<int64_t>({}));
    return given;
  }
};
// Permutes the axes.
inline Array transpose(const Array& data, const TransposeParams& p = {}, const Into& out = {}) {
  return invoke("transpose", {data}, p.attributes(), out);
}

// Rounds toward zero to an integer.
inline Array trunc(const Array& data, const Into& out = {}) {
  return invoke("trunc", {data}, {}, out);
}

// Elements of x where the condition is not 0, otherwise of y. The condition has no gradient.
inline Array where(const Array& condition, const Array& x, const Array& y, const Into& out = {}) {
  return invoke("where", {condition, x, y}, {}, out);
}

// Zeros of the input's shape and dtype.
inline Array zeros_like(const Array& data, const Into& out = {}) {
  return invoke("zeros_like", {data}, {}, out);
}

}  // namespace hybridnet::cpp::nd
namespace hybridnet::cpp::nd {

// Alias of BatchNorm.
inline Outputs BatchNorm_v1(const Array& data, const Array& gamma, const Array& beta, const Array& moving_mean, const
    Array& moving_var, const BatchNormParams& p = {}, const Into& out = {}) {
  return invoke("BatchNorm", {data, gamma, beta, moving_mean, moving_var}, p.attributes(), out);
}

// Alias of BlockGrad.
inline Array stop_gradient(const Array& data, const Into& out = {}) {
  return invoke("BlockGrad", {data}, {}, out);
}

// Alias of CTCLoss.
inline Array ctc_loss(const Array& data, const Array& label, const CTCLossParams& p = {}, const Into& out = {}) {
  return invoke("CTCLoss", {data, label}, p.attributes(), out);
}
inline Array ctc_loss(const Array& data, const Array& label, const Array& data_lengths, const CTCLossParams& p = {},
    const Into& out = {}) {
  return invoke("CTCLoss", {data, label, data_lengths}, p.attributes(), out);
}
inline Array ctc_loss(const Array& data, const Array& label, const Array& data_lengths, const Array& label_lengths,
    const CTCLossParams& p = {}, const Into& out = {}) {
  return invoke("CTCLoss", {data, label, data_lengths, label_lengths}, p.attributes(), out);
}

// Alias of Cast.
inline Array cast(const Array& data, const CastParams& p, const Into& out = {}) {
  return invoke("Cast", {data}, p.attributes(), out);
}

// Alias of Concat.
inline Array concat(const std::vector<Array>& data, const ConcatParams& p = {}, const Into& out = {}) {
  return invoke("Concat", data, p.attributes(), out);
}

// Alias of Convolution.
inline Array Convolution_v1(const Array& data, const Array& weight, const ConvolutionParams& p, const Into& out = {}) {
  return invoke("Convolution", {data, weight}, p.attributes(), out);
}
inline Array Convolution_v1(const Array& data, const Array& weight, const Array& bias, const ConvolutionParams& p, const
    Into& out = {}) {
  return invoke("Convolution", {data, weight, bias}, p.attributes(), out);
}

// Alias of Flatten.
inline Array flatten(const Array& data, const Into& out = {}) {
  return invoke("Flatten", {data}, {}, out);
}

// Alias of Pad.
inline Array pad(const Array& data, const PadParams& p, const Into& out = {}) {
  return invoke("Pad", {data}, p.attributes(), out);
}

// Alias of Pooling.
inline Array Pooling_v1(const Array& data, const PoolingParams& p = {}, const Into& out = {}) {
  return invoke("Pooling", {data}, p.attributes(), out);
}

// Alias of Reshape.
inline Array reshape(const Array& data, const ReshapeParams& p = {}, const Into& out = {}) {
  return invoke("Reshape", {data}, p.attributes(), out);
}

// Alias of SliceChannel.
inline Outputs split(const Array& data, const SliceChannelParams& p, const Into& out = {}) {
  return invoke("SliceChannel", {data}, p.attributes(), out);
}

// Alias of SoftmaxOutput.
inline Array Softmax(const Array& data, const Array& label, const SoftmaxOutputParams& p = {}, const Into& out = {}) {
  return invoke("SoftmaxOutput", {data, label}, p.attributes(), out);
}

// Alias of SwapAxis.
inline Array swapaxes(const Array& data, const SwapAxisParams& p = {}, const Into& out = {}) {
  return invoke("SwapAxis", {data}, p.attributes(), out);
}

// Alias of copy.
inline Array identity(const Array& data, const Into& out = {}) {
  return invoke("_copy", {data}, {}, out);
}

// Alias of linalg_det.
inline Array linalg_det(const Array& A, const Into& out = {}) {
  return invoke("_linalg_det", {A}, {}, out);
}

// Alias of linalg_extractdiag.
inline Array linalg_extractdiag(const Array& A, const nd::linalg::LinalgExtractdiagParams& p = {}, const Into& out = {})
    {
  return invoke("_linalg_extractdiag", {A}, p.attributes(), out);
}

// Alias of linalg_extracttrian.
inline Array linalg_extracttrian(const Array& A, const nd::linalg::LinalgExtracttrianParams& p = {}, const Into& out =
    {}) {
  return invoke("_linalg_extracttrian", {A}, p.attributes(), out);
}

// Alias of linalg_gelqf.
inline Outputs linalg_gelqf(const Array& A, const Into& out = {}) {
  return invoke("_linalg_gelqf", {A}, {}, out);
}

// Alias of linalg_gemm.
inline Array linalg_gemm(const Array& A, const Array& B, const Array& C, const nd::linalg::LinalgGemmParams& p = {},
    const Into& out = {}) {
  return invoke("_linalg_gemm", {A, B, C}, p.attributes(), out);
}

// Alias of linalg_gemm2.
inline Array linalg_gemm2(const Array& A, const Array& B, const nd::linalg::LinalgGemm2Params& p = {}, const Into& out =
    {}) {
  return invoke("_linalg_gemm2", {A, B}, p.attributes(), out);
}

// Alias of linalg_inverse.
inline Array linalg_inverse(const Array& A, const Into& out = {}) {
  return invoke("_linalg_inverse", {A}, {}, out);
}

// Alias of linalg_makediag.
inline Array linalg_makediag(const Array& A, const nd::linalg::LinalgMakediagParams& p = {}, const Into& out = {}) {
  return invoke("_linalg_makediag", {A}, p.attributes(), out);
}

// Alias of linalg_maketrian.
inline Array linalg_maketrian(const Array& A, const nd::linalg::LinalgMaketrianParams& p = {}, const Into& out = {}) {
  return invoke("_linalg_maketrian", {A}, p.attributes(), out);
}

// Alias of linalg_potrf.
inline Array linalg_potrf(const Array& A, const nd::linalg::LinalgPotrfParams& p = {}, const Into& out = {}) {
  return invoke("_linalg_potrf", {A}, p.attributes(), out);
}

// Alias of linalg_potri.
inline Array linalg_potri(const Array& A, const nd::linalg::LinalgPotriParams& p = {}, const Into& out = {}) {
  return invoke("_linalg_potri", {A}, p.attributes(), out);
}

// Alias of linalg_slogdet.
inline Outputs linalg_slogdet(const Array& A, const Into& out = {}) {
  return invoke("_linalg_slogdet", {A}, {}, out);
}

// Alias of linalg_sumlogdiag.
inline Array linalg_sumlogdiag(const Array& A, const Into& out = {}) {
  return invoke("_linalg_sumlogdiag", {A}, {}, out);
}

// Alias of linalg_syevd.
inline Outputs linalg_syevd(const Array& A, const Into& out = {}) {
  return invoke("_linalg_syevd", {A}, {}, out);
}

// Alias of linalg_syrk.
inline Array linalg_syrk(const Array& A, const nd::linalg::LinalgSyrkParams& p = {}, const Into& out = {}) {
  return invoke("_linalg_syrk", {A}, p.attributes(), out);
}

// Alias of linalg_trmm.
inline Array linalg_trmm(const Array& A, const Array& B, const nd::linalg::LinalgTrmmParams& p = {}, const Into& out =
    {}) {
  return invoke("_linalg_trmm", {A, B}, p.attributes(), out);
}

// Alias of linalg_trsm.
inline Array linalg_trsm(const Array& A, const Array& B, const nd::linalg::LinalgTrsmParams& p = {}, const Into& out =
    {}) {
  return invoke("_linalg_trsm", {A, B}, p.attributes(), out);
}

// Alias of random_exponential.
inline Array random_exponential(const nd::random::RandomExponentialParams& p = {}, const Into& out = {}) {
  return invoke("_random_exponential", {}, p.attributes(), out);
}

// Alias of random_gamma.
inline Array random_gamma(const nd::random::RandomGammaParams& p = {}, const Into& out = {}) {
  return invoke("_random_gamma", {}, p.attributes(), out);
}

// Alias of random_generalized_negative_binomial.
inline Array random_generalized_negative_binomial(const nd::random::RandomGeneralizedNegativeBinomialParams& p = {},
    const Into& out = {}) {
  return invoke("_random_generalized_negative_binomial", {}, p.attributes(), out);
}

// Alias of random_negative_binomial.
inline Array random_negative_binomial(const nd::random::RandomNegativeBinomialParams& p = {}, const Into& out = {}) {
  return invoke("_random_negative_binomial", {}, p.attributes(), out);
}

// Alias of random_normal.
inline Array normal(const nd::random::RandomNormalParams& p = {}, const Into& out = {}) {
  return invoke("_random_normal", {}, p.attributes(), out);
}

// Alias of random_normal.
inline Array random_normal(const nd::random::RandomNormalParams& p = {}, const Into& out = {}) {
  return invoke("_random_normal", {}, p.attributes(), out);
}

// Alias of random_pdf_dirichlet.
inline Array random_pdf_dirichlet(const Array& sample, const Array& alpha, const nd::random::RandomPdfDirichletParams& p
    = {}, const Into& out = {}) {
  return invoke("_random_pdf_dirichlet", {sample, alpha}, p.attributes(), out);
}

// Alias of random_pdf_exponential.
inline Array random_pdf_exponential(const Array& sample, const Array& lam, const nd::random::RandomPdfExponentialParams&
    p = {}, const Into& out = {}) {
  return invoke("_random_pdf_exponential", {sample, lam}, p.attributes(), out);
}

// Alias of random_pdf_gamma.
inline Array random_pdf_gamma(const Array& sample, const Array& alpha, const Array& beta, const
    nd::random::RandomPdfGammaParams& p = {}, const Into& out = {}) {
  return invoke("_random_pdf_gamma", {sample, alpha, beta}, p.attributes(), out);
}

// Alias of random_pdf_generalized_negative_binomial.
inline Array random_pdf_generalized_negative_binomial(const Array& sample, const Array& mu, const Array& alpha, const
    nd::random::RandomPdfGeneralizedNegativeBinomialParams& p = {}, const Into& out = {}) {
  return invoke("_random_pdf_generalized_negative_binomial", {sample, mu, alpha}, p.attributes(), out);
}

// Alias of random_pdf_negative_binomial.
inline Array random_pdf_negative_binomial(const Array& sample, const Array& k, const Array& p_, const
    nd::random::RandomPdfNegativeBinomialParams& p = {}, const Into& out = {}) {
  return invoke("_random_pdf_negative_binomial", {sample, k, p_}, p.attributes(), out);
}

// Alias of random_pdf_normal.
inline Array random_pdf_normal(const Array& sample, const Array& mu, const Array& sigma, const
    nd::random::RandomPdfNormalParams& p = {}, const Into& out = {}) {
  return invoke("_random_pdf_normal", {sample, mu, sigma}, p.attributes(), out);
}

// Alias of random_pdf_poisson.
inline Array random_pdf_poisson(const Array& sample, const Array& lam, const nd::random::RandomPdfPoissonParams& p = {},
    const Into& out = {}) {
  return invoke("_random_pdf_poisson", {sample, lam}, p.attributes(), out);
}

// Alias of random_pdf_uniform.
inline Array random_pdf_uniform(const Array& sample, const Array& low, const Array& high, const
    nd::random::RandomPdfUniformParams& p = {}, const Into& out = {}) {
  return invoke("_random_pdf_uniform", {sample, low, high}, p.attributes(), out);
}

// Alias of random_poisson.
inline Array random_poisson(const nd::random::RandomPoissonParams& p = {}, const Into& out = {}) {
  return invoke("_random_poisson", {}, p.attributes(), out);
}

// Alias of random_randint.
inline Array random_randint(const nd::random::RandomRandintParams& p, const Into& out = {}) {
  return invoke("_random_randint", {}, p.attributes(), out);
}

// Alias of random_uniform.
inline Array random_uniform(const nd::random::RandomUniformParams& p = {}, const Into& out = {}) {
  return invoke("_random_uniform", {}, p.attributes(), out);
}

// Alias of random_uniform.
inline Array uniform(const nd::random::RandomUniformParams& p = {}, const Into& out = {}) {
  return invoke("_random_uniform", {}, p.attributes(), out);
}

// Alias of ravel_multi_index.
inline Array ravel_multi_index(const Array& data, const nd::internal::RavelMultiIndexParams& p, const Into& out = {}) {
  return invoke("_ravel_multi_index", {data}, p.attributes(), out);
}

// Alias of sample_exponential.
inline Array sample_exponential(const Array& lam, const nd::sample::SampleExponentialParams& p = {}, const Into& out =
    {}) {
  return invoke("_sample_exponential", {lam}, p.attributes(), out);
}

// Alias of sample_gamma.
inline Array sample_gamma(const Array& alpha, const Array& beta, const nd::sample::SampleGammaParams& p = {}, const
    Into& out = {}) {
  return invoke("_sample_gamma", {alpha, beta}, p.attributes(), out);
}

// Alias of sample_generalized_negative_binomial.
inline Array sample_generalized_negative_binomial(const Array& mu, const Array& alpha, const
    nd::sample::SampleGeneralizedNegativeBinomialParams& p = {}, const Into& out = {}) {
  return invoke("_sample_generalized_negative_binomial", {mu, alpha}, p.attributes(), out);
}

// Alias of sample_multinomial.
inline Outputs sample_multinomial(const Array& data, const nd::sample::SampleMultinomialParams& p = {}, const Into& out
    = {}) {
  return invoke("_sample_multinomial", {data}, p.attributes(), out);
}

// Alias of sample_negative_binomial.
inline Array sample_negative_binomial(const Array& k, const Array& p_, const nd::sample::SampleNegativeBinomialParams& p
    = {}, const Into& out = {}) {
  return invoke("_sample_negative_binomial", {k, p_}, p.attributes(), out);
}

// Alias of sample_normal.
inline Array sample_normal(const Array& mu, const Array& sigma, const nd::sample::SampleNormalParams& p = {}, const
    Into& out = {}) {
  return invoke("_sample_normal", {mu, sigma}, p.attributes(), out);
}

// Alias of sample_poisson.
inline Array sample_poisson(const Array& lam, const nd::sample::SamplePoissonParams& p = {}, const Into& out = {}) {
  return invoke("_sample_poisson", {lam}, p.attributes(), out);
}

// Alias of sample_uniform.
inline Array sample_uniform(const Array& low, const Array& high, const nd::sample::SampleUniformParams& p = {}, const
    Into& out = {}) {
  return invoke("_sample_uniform", {low, high}, p.attributes(), out);
}

// Alias of shuffle.
inline Array shuffle(const Array& data, const Into& out = {}) {
  return invoke("_shuffle", {data}, {}, out);
}

// Alias of unravel_index.
inline Array unravel_index(const Array& data, const nd::internal::UnravelIndexParams& p, const Into& out = {}) {
  return invoke("_unravel_index", {data}, p.attributes(), out);
}

// Alias of add_n.
inline Array ElementWiseSum(const std::vector<Array>& args, const Into& out = {}) {
  return invoke("add_n", args, {}, out);
}

// Alias of broadcast_add.
inline Array broadcast_plus(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_add", {lhs, rhs}, {}, out);
}

// Alias of broadcast_axis.
inline Array broadcast_axes(const Array& data, const BroadcastAxisParams& p = {}, const Into& out = {}) {
  return invoke("broadcast_axis", {data}, p.attributes(), out);
}

// Alias of broadcast_sub.
inline Array broadcast_minus(const Array& lhs, const Array& rhs, const Into& out = {}) {
  return invoke("broadcast_sub", {lhs, rhs}, {}, out);
}

// Alias of max.
inline Array max_axis(const Array& data, const MaxParams& p = {}, const Into& out = {}) {
  return invoke("max", {data}, p.attributes(), out);
}

// Alias of min.
inline Array min_axis(const Array& data, const MinParams& p = {}, const Into& out = {}) {
  return invoke("min", {data}, p.attributes(), out);
}

// Alias of pick.
inline Array choose_element_0index(const Array& data, const Array& index, const PickParams& p = {}, const Into& out =
    {}) {
  return invoke("pick", {data, index}, p.attributes(), out);
}

// Alias of reverse.
inline Array flip(const Array& data, const ReverseParams& p, const Into& out = {}) {
  return invoke("reverse", {data}, p.attributes(), out);
}

// Alias of slice.
inline Array crop(const Array& data, const SliceParams& p, const Into& out = {}) {
  return invoke("slice", {data}, p.attributes(), out);
}

// Alias of sum.
inline Array sum_axis(const Array& data, const SumParams& p = {}, const Into& out = {}) {
  return invoke("sum", {data}, p.attributes(), out);
}

}  // namespace hybridnet::cpp::nd
namespace hybridnet::cpp::nd::contrib {

// Alias of CTCLoss.
inline Array CTCLoss(const Array& data, const Array& label, const nd::CTCLossParams& p = {}, const Into& out = {}) {
  return invoke("CTCLoss", {data, label}, p.attributes(), out);
}
inline Array CTCLoss(const Array& data, const Array& label, const Array& data_lengths, const nd::CTCLossParams& p = {},
    const Into& out = {}) {
  return invoke("CTCLoss", {data, label, data_lengths}, p.attributes(), out);
}
inline Array CTCLoss(const Array& data, const Array& label, const Array& data_lengths, const Array& label_lengths, const
    nd::CTCLossParams& p = {}, const Into& out = {}) {
  return invoke("CTCLoss", {data, label, data_lengths, label_lengths}, p.attributes(), out);
}

// Alias of CTCLoss.
inline Array ctc_loss(const Array& data, const Array& label, const nd::CTCLossParams& p = {}, const Into& out = {}) {
  return invoke("CTCLoss", {data, label}, p.attributes(), out);
}
inline Array ctc_loss(const Array& data, const Array& label, const Array& data_lengths, const nd::CTCLossParams& p = {},
    const Into& out = {}) {
  return invoke("CTCLoss", {data, label, data_lengths}, p.attributes(), out);
}
inline Array ctc_loss(const Array& data, const Array& label, const Array& data_lengths, const Array& label_lengths,
    const nd::CTCLossParams& p = {}, const Into& out = {}) {
  return invoke("CTCLoss", {data, label, data_lengths, label_lengths}, p.attributes(), out);
}

// Alias of contrib_box_nms.
inline Array box_non_maximum_suppression(const Array& data, const ContribBoxNmsParams& p = {}, const Into& out = {}) {
  return invoke("_contrib_box_nms", {data}, p.attributes(), out);
}

// Alias of contrib_gradientmultiplier.
inline Array backward_gradientmultiplier(const Array& data, const ContribGradientmultiplierParams& p = {}, const Into&
    out = {}) {
  return invoke("_contrib_gradientmultiplier", {data}, p.attributes(), out);
}

}  // namespace hybridnet::cpp::nd::contrib
