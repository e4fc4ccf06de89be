"""Runs exported models in programs of C++ and of Java: each reads a list of cases and saves the outputs.

A line of cases.txt holds three paths without spaces: the model (PATH-symbol.json and PATH-0000.params), the inputs
("data" or "data0", ...), and the file for the outputs ("0", "1", ...).
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess

import hybridnet

ROOT = pathlib.Path(__file__).resolve().parents[3]

CPP = r"""
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hybridnet/cpp/model.h"

using hybridnet::cpp::Array;

int main(int, char** argv) {
  std::ifstream cases(argv[1]);
  std::string model_path, inputs_path, outputs_path;
  int failed = 0;
  while (cases >> model_path >> inputs_path >> outputs_path) {
    try {
      const hybridnet::cpp::Model model(model_path + "-symbol.json", model_path + "-0000.params");
      std::map<std::string, Array> arrays;
      for (auto& [name, array] : hybridnet::cpp::load_arrays(inputs_path)) arrays.emplace(name, array);
      std::vector<Array> inputs;
      for (const std::string& name : model.input_names()) inputs.push_back(arrays.at(name));
      const std::vector<Array> outputs = model.run(inputs);
      std::vector<std::pair<std::string, Array>> named;
      for (size_t i = 0; i < outputs.size(); ++i) named.emplace_back(std::to_string(i), outputs[i]);
      hybridnet::cpp::save_arrays(outputs_path, named);
    } catch (const std::exception& error) {
      std::cout << inputs_path << ": " << error.what() << "\n";
      failed = 1;
    }
  }
  return failed;
}
"""

JAVA = r"""
import java.nio.file.*; import java.util.*; import org.hybridnet.*;
class RunCases {
  public static void main(String[] words) throws Exception {
    boolean failed = false;
    for (String line : Files.readAllLines(Path.of(words[0]))) {
      String[] paths = line.split(" ");
      try (Model model = Model.load(paths[0])) {
        Map<String, NDArray> arrays = NDArray.load(Path.of(paths[1]));
        NDArray[] inputs = model.inputs().stream().map(arrays::get).toArray(NDArray[]::new);
        NDArray[] outputs = model.predict(inputs);
        Map<String, NDArray> named = new LinkedHashMap<>();
        for (int i = 0; i < outputs.length; i++) named.put(Integer.toString(i), outputs[i]);
        NDArray.save(Path.of(paths[2]), named);
      } catch (RuntimeException error) {
        System.out.println(paths[1] + ": " + error.getMessage());
        failed = true;
      }
    }
    System.exit(failed ? 1 : 0);
  }
}
"""


def compiler() -> str | None:
    """Returns the path of a C++ compiler."""
    return shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")


def run_in_cpp(cases: pathlib.Path, folder: pathlib.Path) -> tuple[bool, str]:
    """Compiles the C++ program as a user would, and runs the cases. Returns whether all ran, and what it printed."""
    library, program = pathlib.Path(hybridnet.__file__).parent, folder / "run_cases"
    (folder / "run_cases.cc").write_text(CPP, "utf-8")
    command = [
        compiler(), "-std=c++20", "-O0", "-Wall", "-Wextra", f"-I{ROOT / 'include'}", folder / "run_cases.cc",
        "-o", program, f"-L{library}", "-lhybridnet", f"-Wl,-rpath,{library}", f"-Wl,-rpath-link,{library}",
    ]  # fmt: skip
    subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, timeout=120)
    done = subprocess.run([str(program), str(cases)], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode == 0, done.stdout + done.stderr
