// Checks arrays, gradients, models and training on gpu(0), each against the CPU in the same process:
//
//   on_gpu SYMBOL PARAMS CASE NAME...
//
// CASE is a .params file with "in:NAME" for each input, and "out:NUMBER". NAME is one of the checks at the end of the
// file. Prints the name of each check that holds.
#include <atomic>
#include <cmath>
#include <iostream>
#include <map>
#include <thread>

#include "hybridnet/cpp/autograd.h"
#include "hybridnet/cpp/batcher.h"
#include "hybridnet/cpp/nd.h"
#include "hybridnet/cpp/session.h"
#include "hybridnet/cpp/trainer.h"

using namespace hybridnet::cpp;

namespace {

struct Case {
  std::string symbol, params;
  std::vector<Array> inputs, outputs;
  Model load() const { return Model(symbol, params); }
};

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("does not hold: " + what);
}

// The call must throw Kind with all of these texts in its message.
template <typename Kind, typename Call>
void require_error(const Call& call, const std::vector<std::string>& texts) {
  try {
    call();
  } catch (const Kind& error) {
    for (const std::string& text : texts)
      require(std::string(error.what()).find(text) != std::string::npos, "'" + text + "' in: " + error.what());
    return;
  }
  throw std::runtime_error("no error, instead of one that says " + texts.at(0));
}

void require_close(const Array& given, const Array& wanted, const std::string& what, float tolerance = 1e-5f) {
  require(given.shape() == wanted.shape(), "the shape of " + what);
  const std::vector<float> a = given.to_vector<float>(), b = wanted.to_vector<float>();
  for (size_t i = 0; i < a.size(); ++i)
    require(std::abs(a[i] - b[i]) <= tolerance * (1 + std::abs(b[i])),
            what + "[" + std::to_string(i) + "]: " + std::to_string(a[i]) + " and " + std::to_string(b[i]));
}

std::vector<Array> moved(const std::vector<Array>& arrays, const Device& device) {
  std::vector<Array> result;
  for (const Array& array : arrays) result.push_back(array.to(device));
  return result;
}

const Device kGpu = Device::gpu(0);

void arrays(const Case&) {
  require(num_gpus() >= 1 && why_no_gpu().empty(), "there is a GPU");
  const MemoryInfo memory = gpu_memory();
  require(0 < memory.free_bytes && memory.free_bytes <= memory.total_bytes, "memory of the GPU");
  const Array x = Array::from<float>({2, 2}, {1, 2, 3, 4}, kGpu), zeros = Array::zeros({3}, HN_INT32, kGpu);
  require(x.device() == kGpu && zeros.device() == kGpu, "new arrays are on the device");
  require(zeros.to_vector<int32_t>() == std::vector<int32_t>(3), "zeros");
  require((2 * x + 1).device() == kGpu, "results are where the inputs are");
  require((2 * x + 1).to_vector<float>() == std::vector<float>{3, 5, 7, 9}, "arithmetic");
  x.copy_from(std::vector<float>{5, 6, 7, 8});
  require(x.slice(1, 2).reshape({2}).to_vector<float>() == std::vector<float>{7, 8}, "views");
  require(x.to(kGpu).get() == x.get(), "an array that is there already is not copied");
  require(x.copy().device() == kGpu, "a copy stays on the device");
  const Array back = x.to(Device::cpu());
  require(back.device() == Device::cpu() && back.values<float>()[3] == 8, "a copy on the CPU");
  const Array ones = invoke("_ones", {}, {{"shape", Shape{2}}, {"ctx", kGpu}});
  require(ones.device() == kGpu && ones.to_vector<float>() == std::vector<float>{1, 1}, "an operator without inputs");
  require(Array::zeros({0, 2}, HN_FLOAT32, kGpu).to(Device::cpu()).to_vector<float>().empty(), "no elements");
  require(!allow_tf32() && allow_tf32(false) && !allow_tf32(false), "TF32 is off until it is allowed");
  save_arrays("/dev/null", {{"x", x}});
}

void errors(const Case& given) {
  const Array x = Array::zeros({2}, HN_FLOAT32, kGpu), y = Array::zeros({2});
  require_error<UnsupportedError>([&] { x.values<float>(); }, {"hn_array_data", "gpu(0)", "hn_array_copy_to"});
  require_error<UnsupportedError>([&] { x.to_dlpack(); }, {"hn_array_to_dlpack", "gpu(0)"});
  require_error<ValueError>([&] { (x + y).wait(); }, {"cpu(0)", "gpu(0)"});
  require_error<UnsupportedError>([] { Array::zeros({2}, HN_FLOAT32, Device::gpu(7)); }, {"gpu(7)"});
  require_error<UnsupportedError>([&] { y.to(Device::gpu(7)); }, {"gpu(7)"});
  require_error<UnsupportedError>([] { gpu_memory(7); }, {"gpu(7)"});
  require_error<ValueError>([] { Array::zeros({2}, HN_FLOAT32, Device::gpu(-1)); }, {"id", "0 or more"});
  const Array sparse = Array::zeros({3, 2}).cast_storage("row_sparse");
  require_error<UnsupportedError>([&] { sparse.to(kGpu); }, {"sparse", "hn_array_cast_storage"});
  require_error<UnsupportedError>(
      [&] {
        Array::zeros({3, 2}, HN_FLOAT32, kGpu).attach_grad("write", "row_sparse");
      },
      {"sparse", "CPU"});
  const Model model = given.load();
  require_error<UnsupportedError>([&] { model.to(Device::gpu(7)); }, {"gpu(7)"});
  require(model.device() == Device::cpu(), "a model that could not be moved is where it was");
  require_error<ValueError>([&] { model.run(moved(given.inputs, kGpu)); }, {"cpu(0), where the model is"});
  model.to(kGpu);
  const std::vector<std::string> fix = {"hn_model_run", model.input_names()[0], "gpu(0), where the model is",
                                        "hn_array_copy_to_device"};
  require_error<ValueError>([&] { model.run(given.inputs); }, fix);
  require_error<ValueError>([&] { model.run_into(moved(given.inputs, kGpu), given.outputs); },
                            {"hn_model_run_into", model.output_names()[0], "cpu(0)"});
  require_error<ValueError>([&] { Session(model, given.inputs); }, {"hn_session_create", "gpu(0)"});
  require_error<ValueError>([&] { Session(model, moved(given.inputs, kGpu), given.outputs); },
                            {"hn_session_create", model.output_names()[0]});
}

void gradients(const Case&) {
  const Array x = Array::from<float>({3}, {1, 2, 3});
  x.attach_grad();
  Array y;
  {
    const autograd::Recorder recorder;
    y = x.to(kGpu);
    y = y * y * 2.0;
  }
  y.backward();
  require(y.device() == kGpu && x.grad().device() == Device::cpu(), "each gradient is where its array is");
  require(x.grad().to_vector<float>() == std::vector<float>{4, 8, 12}, "the gradient comes back through the copy");
  const Array w = Array::from<float>({2}, {3, 4}, kGpu);
  w.attach_grad("add");
  for (int round = 0; round < 2; ++round) {
    Array loss;
    {
      const autograd::Recorder recorder;
      loss = nd::sum(w * w);
    }
    loss.backward();
  }
  require(w.grad().device() == kGpu, "a gradient is on the device of its array");
  require(w.grad().to_vector<float>() == std::vector<float>{12, 16}, "gradients are added");
}

void model(const Case& given) {
  const Model model = given.load();
  model.parameters()[0].attach_grad("add");
  model.to(kGpu);
  require(model.device() == kGpu && model.parameters()[0].device() == kGpu, "the parameters are moved");
  require(model.parameters()[0].grad().device() == kGpu, "a gradient moves, too");
  const std::vector<Array> inputs = moved(given.inputs, kGpu), outputs = model.run(inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    require(outputs[i].device() == kGpu, "outputs are on the device");
    require_close(outputs[i], given.outputs[i], "output " + std::to_string(i));
  }
  const std::vector<Array> places = moved(given.outputs, kGpu);
  for (const Array& place : places) place *= 0;
  model.run_into(inputs, places);
  for (size_t i = 0; i < places.size(); ++i) require_close(places[i], given.outputs[i], "an output in place");
  model.save(given.symbol + ".saved", given.params + ".saved");
  const Model saved(given.symbol + ".saved", given.params + ".saved");
  require(saved.device() == Device::cpu(), "a loaded model is on the CPU");
  require_close(saved.run(given.inputs)[0], given.outputs[0], "an output of the saved model");
  model.to(Device::cpu());
  require_close(model.run(given.inputs)[0], given.outputs[0], "an output back on the CPU");
}

void outputs(const Case& given) {  // several times, so that the plan becomes a CUDA graph
  const Model model = given.load();
  model.to(kGpu);
  const std::vector<Array> inputs = moved(given.inputs, kGpu);
  const Session session(model, inputs);
  for (int round = 0; round < 4; ++round) {
    session.run();
    const std::vector<Array> found = model.run(inputs);
    require(found.size() == given.outputs.size(), "the number of outputs");
    for (size_t i = 0; i < found.size(); ++i) {
      require_close(found[i], given.outputs[i], "output " + std::to_string(i));
      require_close(session.output(i), given.outputs[i], "output " + std::to_string(i) + " of the session");
    }
  }
}

void moves(const Case& given) {  // runs of other threads see the model before or after a move, never between
  const Model model = given.load();
  std::atomic<bool> ends{false};
  std::atomic<int> runs{0};
  std::string problem;
  std::thread runner([&] {
    try {
      while (!ends) {
        std::vector<Array> out;
        try {
          out = model.run(moved(given.inputs, model.device()));
        } catch (const ValueError&) {  // the model was moved after the inputs
          continue;
        }
        require_close(out[0], given.outputs[0], "an output between moves");
        ++runs;
      }
    } catch (const std::exception& error) {
      problem = error.what();
      ends = true;
    }
  });
  for (int round = 0; !ends && (round < 20 || runs < 20); ++round)
    model.to(round % 2 == 0 ? kGpu : Device::cpu()), std::this_thread::yield();
  ends = true;
  runner.join();
  require(problem.empty(), problem);
}

void session(const Case& given) {
  const Model model = given.load();
  model.to(kGpu);
  const std::vector<Array> inputs = moved(given.inputs, kGpu);
  const Session session(model, inputs), into(model, inputs, moved(given.outputs, kGpu));
  for (int round = 0; round < 3; ++round) {
    session.run();
    into.run();
    require(session.output(0).device() == kGpu, "outputs are on the device");
    require_close(session.output(0), given.outputs[0], "an output of a session");
    require_close(into.output(0), given.outputs[0], "an output that was given");
  }
  const std::vector<float> values = given.inputs[0].to_vector<float>();
  inputs[0].copy_from(std::vector<float>(values.size()));
  session.run();
  Array zeroed = given.inputs[0].copy();
  zeroed *= 0;
  std::vector<Array> others = given.inputs;
  others[0] = zeroed;
  require_close(session.output(0), given.load().run(others)[0], "an output of new values");
}

void copies(const Case&) {  // outputs that are one value, or an input, receive copies
  constexpr std::string_view kTwice = R"json({"nodes": [{"op": "null", "name": "data", "inputs": []},
    {"op": "square", "name": "y", "inputs": [[0, 0, 0]]}],
   "arg_nodes": [0], "heads": [[1, 0, 0], [1, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}})json";
  const Model model = Model::from_memory(kTwice, {});
  model.to(kGpu);
  const Array x = Array::zeros({64}, HN_FLOAT32, kGpu);
  const Session session(model, {x}, {Array::zeros({64}, HN_FLOAT32, kGpu), Array::zeros({64}, HN_FLOAT32, kGpu)});
  for (int round = 1; round <= 4; ++round) {
    x.copy_from(std::vector<float>(64, static_cast<float>(round)));
    session.run();
    for (size_t i = 0; i < 2; ++i)
      require(session.output(i).to_vector<float>() == std::vector<float>(64, static_cast<float>(round * round)),
              "output " + std::to_string(i) + " of run " + std::to_string(round));
  }
  const Session in_place(model, {x}, {x, Array::zeros({64}, HN_FLOAT32, kGpu)});
  for (int round = 1; round <= 4; ++round) {
    x.copy_from(std::vector<float>(64, static_cast<float>(round)));
    in_place.run();
    require(x.to_vector<float>() == std::vector<float>(64, static_cast<float>(round * round)), "an input as output");
  }
}

void batcher(const Case& given) {
  const Model model = given.load();
  model.to(kGpu);
  std::vector<HnTensorSpec> specs;
  for (const Array& input : given.inputs) {
    HnTensorSpec spec{};
    const Shape shape = input.shape();
    std::copy(shape.begin(), shape.end(), spec.shape);
    spec.ndim = static_cast<int>(shape.size());
    spec.dtype = input.dtype();
    specs.push_back(spec);
  }
  const Batcher batcher(model, {.max_rows = 8, .max_wait_us = 500}, specs);
  std::vector<std::thread> threads;
  std::atomic<int> answers{0};
  for (int number = 0; number < 4; ++number)
    threads.emplace_back([&] {
      for (int round = 0; round < 3; ++round) {
        const std::vector<Array> outputs = batcher.run(given.inputs);
        require(outputs[0].device() == Device::cpu(), "answers are on the CPU");
        require_close(outputs[0], given.outputs[0], "an answer");
        ++answers;
      }
    });
  for (std::thread& thread : threads) thread.join();
  require(answers == 12, "every request is answered");
  require_error<UnsupportedError>([&] { batcher.run(moved(given.inputs, kGpu)); },
                                  {"hn_batcher_run", "gpu(0)", "hn_model_run"});
}

std::vector<Array> trained(const Case& given, const std::string& optimizer, const Device& device) {
  const Model model = given.load();
  model.to(device);
  const Trainer trainer(model, optimizer, {{"learning_rate", 0.05}});
  const std::vector<Array> inputs = moved(given.inputs, device);
  for (int step = 0; step < 3; ++step) {
    Array loss;
    {
      const autograd::Recorder recorder;
      loss = nd::mean(nd::square(model.run(inputs)[0] - 0.5));
    }
    loss.backward();
    trainer.step(1);
  }
  const std::string file = given.params + "." + optimizer;
  trainer.save_states(file);
  const Trainer other(model, optimizer, {{"learning_rate", 0.05}});
  other.load_states(file);
  require(other.num_updates() == 3, "states are saved and loaded");
  require(model.parameters()[0].device() == device, "parameters stay on the device");
  return model.parameters();
}

void train(const Case& given) {
  const std::vector<Array> before = given.load().parameters();
  for (const std::string optimizer : {"sgd", "adam"}) {
    const std::vector<Array> cpu = trained(given, optimizer, Device::cpu()), gpu = trained(given, optimizer, kGpu);
    for (size_t i = 0; i < cpu.size(); ++i) require_close(gpu[i], cpu[i], optimizer + ", parameter", 1e-3f);
    require(cpu[0].to_vector<float>() != before[0].to_vector<float>(), "training changes parameters");
  }
  const Model model = given.load();  // a trainer from before a move has parameters that backward does not reach
  const Trainer trainer(model, "sgd");
  model.to(kGpu);
  Array loss;
  {
    const autograd::Recorder recorder;
    loss = nd::mean(model.run(moved(given.inputs, kGpu))[0]);
  }
  loss.backward();
  require_error<GradientError>([&] { trainer.step(1); }, {"has not been computed since the last step"});
}

void memory(const Case& given) {  // freed memory is used again
  int64_t free_bytes = 0;
  for (int round = 0; round < 30; ++round) {
    const Model model = given.load();
    model.to(kGpu);
    const std::vector<Array> inputs = moved(given.inputs, kGpu);
    const Session session(model, inputs);
    session.run();
    require_close(model.run(inputs)[0], session.output(0), "an output");
    model.to(Device::cpu());
    wait_all();  // until then the copies to the CPU hold the parameters
    if (round == 10) free_bytes = gpu_memory().free_bytes;
  }
  require(gpu_memory().free_bytes == free_bytes, "the memory in use does not grow");
}

const std::map<std::string, void (*)(const Case&)> kChecks = {
    {"arrays", arrays}, {"errors", errors},   {"gradients", gradients}, {"model", model},
    {"moves", moves},   {"session", session}, {"copies", copies},       {"batcher", batcher},
    {"train", train},   {"memory", memory},   {"outputs", outputs},
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) return 2;
  Case given{.symbol = argv[1], .params = argv[2], .inputs = {}, .outputs = {}};
  std::map<std::string, Array> stored;
  for (const auto& [name, array] : load_arrays(argv[3])) stored[name] = array;
  for (const std::string& name : given.load().input_names()) given.inputs.push_back(stored.at("in:" + name));
  for (size_t i = 0; stored.contains("out:" + std::to_string(i)); ++i)
    given.outputs.push_back(stored.at("out:" + std::to_string(i)));
  for (int i = 4; i < argc; ++i) {
    kChecks.at(argv[i])(given);
    wait_all();
    std::cout << argv[i] << "\n";
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
