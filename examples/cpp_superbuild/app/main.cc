// Fits a line to noisy points by gradient descent, without Python and without a model from elsewhere.
#include <iostream>

#include "hybridnet/cpp/autograd.h"
#include "hybridnet/cpp/nd.h"

using namespace hybridnet::cpp;

int main() try {
  seed(1);
  const Array x = nd::random::uniform({.low = -1, .high = 1, .shape = {64, 1}});
  const Array y = x * 3 - 0.5 + nd::random::normal({.scale = 0.01, .shape = {64, 1}});
  const Array weight = Array::zeros({1, 1}), bias = Array::zeros({1});
  weight.attach_grad();
  bias.attach_grad();
  for (int step = 0; step < 200; ++step) {
    Array loss;
    {
      const autograd::Recorder recorder;
      loss = nd::mean(nd::square(nd::FullyConnected(x, weight, bias, {.num_hidden = 1}) - y));
    }
    loss.backward();
    nd::sgd_update(weight, weight.grad(), {.lr = 0.3}, into(weight));
    nd::sgd_update(bias, bias.grad(), {.lr = 0.3}, into(bias));
  }
  std::cout << "y = " << weight.to_vector<float>()[0] << " * x + " << bias.to_vector<float>()[0] << "\n";
  return 0;
} catch (const Error& error) {
  std::cerr << error.kind() << ": " << error.what() << "\n";
  return 1;
}
