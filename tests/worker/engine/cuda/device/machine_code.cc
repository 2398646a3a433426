#include "tests/worker/engine/cuda/device/machine_code.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace assay::testing {
namespace {

// What stands between `before` and `after`; empty if it does not.
absl::string_view Between(absl::string_view text, absl::string_view before,
                          absl::string_view after) {
  const size_t begin = text.find(before);
  if (begin == absl::string_view::npos) return "";
  text.remove_prefix(begin + before.size());
  return text.substr(0, text.find(after));
}

// The operation of "void ...ForEach<assay::cuda::Sgd>(assay::cuda::Sgd)"; empty: none of ours.
std::string OperationOf(absl::string_view symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(std::string(symbol).c_str(), nullptr, nullptr, &status), &std::free);
  if (name == nullptr) return "";
  const absl::string_view all = name.get();
  const size_t begin = all.find('<'), end = all.rfind(">(");
  if (begin == absl::string_view::npos || end == absl::string_view::npos) return "";
  const absl::string_view operation =
      absl::StripAsciiWhitespace(all.substr(begin + 1, end - begin - 1));
  return absl::StrReplaceAll(operation, {{"assay::cuda::", ""}, {"assay::", ""}, {"> >", ">>"}});
}

struct Function {
  std::vector<std::string> instructions;  // without predicates
  std::map<std::string, size_t> labels;   // the instruction behind each
};

struct Loop {
  size_t first, last;  // instructions
  bool Holds(const Loop& other) const {
    return first <= other.first && other.last <= last &&
           (first != other.first || last != other.last);
  }
};

// Branches backwards, but for the one to itself that fills up the end.
std::vector<Loop> LoopsOf(const Function& function) {
  std::vector<Loop> loops;
  for (size_t i = 0; i < function.instructions.size(); ++i) {
    if (!absl::StartsWith(function.instructions[i], "BRA")) continue;
    const auto to = function.labels.find(std::string(Between(function.instructions[i], "`(", ")")));
    if (to != function.labels.end() && to->second < i) loops.push_back({to->second, i});
  }
  return loops;
}

// A load's width is part of its name; without one it is that of a word.
int64_t LoadBits(absl::string_view instruction) {
  if (!absl::StartsWith(instruction, "LDG")) return 0;
  const absl::string_view name = instruction.substr(0, instruction.find(' '));
  for (const auto& [part, bits] : {std::pair(".128", 128), {".64", 64}, {".U16", 16}, {".U8", 8}})
    if (absl::StrContains(name, part)) return bits;
  return 32;
}

KernelCode CodeOf(const Function& function) {
  KernelCode code;
  const std::vector<Loop> loops = LoopsOf(function);
  for (const Loop& loop : loops) {
    if (std::any_of(loops.begin(), loops.end(), [&](const Loop& l) { return loop.Holds(l); }))
      continue;
    const auto length = static_cast<int64_t>(loop.last - loop.first + 1);
    if (length <= code.instructions) continue;
    code.instructions = length;
    code.divisions = code.calls = code.load_bits = 0;
    for (size_t i = loop.first; i <= loop.last; ++i) {
      // Rounding up, as only a division's first guess does.
      code.divisions += absl::StartsWith(function.instructions[i], "I2F.U32.RP") ? 1 : 0;
      code.calls += absl::StartsWith(function.instructions[i], "CALL") ? 1 : 0;
      code.load_bits = std::max(code.load_bits, LoadBits(function.instructions[i]));
    }
  }
  return code;
}

// "  /*0130*/  @!P0 BRA `(.L_x_379) ;" without place and predicate; empty: no instruction.
std::string InstructionOf(absl::string_view line) {
  if (!absl::StartsWith(line, "/*")) return "";
  line = absl::StripAsciiWhitespace(line.substr(line.find("*/") + 2));
  if (absl::ConsumePrefix(&line, "@")) line = line.substr(std::min(line.find(' '), line.size()));
  return std::string(absl::StripAsciiWhitespace(line));
}

// What ptxas says of the function that it named last.
void AddResources(absl::string_view line, KernelCode* code) {
  const auto number = [line](absl::string_view before, absl::string_view after) {
    int64_t value = 0;
    static_cast<void>(absl::SimpleAtoi(Between(line, before, after), &value));
    return value;
  };
  code->registers += number("Used ", " registers");
  code->spill_bytes += number("frame, ", " bytes spill stores");
  if (!absl::StrContains(line, "stack frame")) return;
  int64_t frame = 0;
  const absl::string_view start = line.substr(0, line.find(" bytes stack"));
  if (absl::SimpleAtoi(absl::StripAsciiWhitespace(start), &frame)) code->spill_bytes += frame;
}

}  // namespace

std::map<std::string, KernelCode> ReadMachineCode(absl::string_view sass, absl::string_view ptxas) {
  std::map<std::string, Function> functions;
  Function* function = nullptr;
  for (absl::string_view line : absl::StrSplit(sass, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (absl::StartsWith(line, ".section")) {
      const std::string name = OperationOf(Between(line, ".text.", ","));
      function = name.empty() ? nullptr : &functions[name];
    } else if (function != nullptr && absl::ConsumeSuffix(&line, ":")) {
      function->labels[std::string(line)] = function->instructions.size();
    } else if (function != nullptr) {
      std::string instruction = InstructionOf(line);
      if (!instruction.empty()) function->instructions.push_back(std::move(instruction));
    }
  }
  std::map<std::string, KernelCode> codes;
  for (const auto& [name, of] : functions)
    codes[name] = CodeOf(of);
  KernelCode* code = nullptr;
  for (const absl::string_view line : absl::StrSplit(ptxas, '\n')) {
    if (absl::StrContains(line, "Compiling entry function")) {
      const auto found = codes.find(OperationOf(Between(line, "'", "'")));
      code = found == codes.end() ? nullptr : &found->second;
    } else if (code != nullptr) {
      AddResources(line, code);
    }
  }
  return codes;
}

}  // namespace assay::testing
