// Valid logs, line by line, for tests to damage.

#ifndef TESTS_RULES_SAMPLE_LOG_H_
#define TESTS_RULES_SAMPLE_LOG_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/log.h"

namespace assay::testing {

// One record; `value` and `metadata` are JSON text.
struct SampleLine {
  std::string key;
  std::string value = "null";
  std::string metadata = "{}";
  int64_t time_ms = 0;  // 0: one second after the line before

  std::string Text() const {
    return absl::StrCat(":::MLLOG {\"namespace\": \"\", \"time_ms\": ", time_ms,
                        ", \"event_type\": \"POINT_IN_TIME\", \"key\": \"", key,
                        "\", \"value\": ", value, ", \"metadata\": ", metadata, "}");
  }
};

class SampleLog {
 public:
  explicit SampleLog(std::vector<SampleLine> lines) : lines_(std::move(lines)) {
    int64_t now_ms = 1700000000000;
    for (SampleLine& line : lines_)
      line.time_ms = now_ms += 1000;
  }

  // Changes the first line of `key`.
  SampleLog& Set(const std::string& key, const std::string& value) {
    At(key)->value = value;
    return *this;
  }
  SampleLog& SetMetadata(const std::string& key, const std::string& metadata) {
    At(key)->metadata = metadata;
    return *this;
  }
  SampleLog& SetTime(const std::string& key, int64_t time_ms) {
    At(key)->time_ms = time_ms;
    return *this;
  }
  int64_t TimeOf(const std::string& key) { return At(key)->time_ms; }
  // Removes every line of `key`.
  SampleLog& Remove(const std::string& key) {
    lines_.erase(std::remove_if(lines_.begin(), lines_.end(),
                                [&](const SampleLine& line) { return line.key == key; }),
                 lines_.end());
    return *this;
  }
  SampleLog& Append(SampleLine line) {
    line.time_ms = line.time_ms == 0 ? lines_.back().time_ms + 1000 : line.time_ms;
    lines_.push_back(std::move(line));
    return *this;
  }
  // Inserts behind the first line of `key`.
  SampleLog& InsertAfter(const std::string& key, SampleLine line) {
    const auto at = At(key);
    line.time_ms = line.time_ms == 0 ? at->time_ms : line.time_ms;
    lines_.insert(at + 1, std::move(line));
    return *this;
  }
  // Adds a line that is no record of ours.
  SampleLog& AppendRaw(std::string raw) {
    raw_ += raw;
    return *this;
  }

  std::vector<std::string> Lines() const {
    std::vector<std::string> texts;
    for (const SampleLine& line : lines_)
      texts.push_back(line.Text());
    return texts;
  }
  std::string Text() const { return absl::StrCat(absl::StrJoin(Lines(), "\n"), "\n", raw_); }

 private:
  std::vector<SampleLine>::iterator At(const std::string& key) {
    const auto found = std::find_if(lines_.begin(), lines_.end(),
                                    [&](const SampleLine& line) { return line.key == key; });
    CHECK(found != lines_.end()) << "key=" << key;
    return found;
  }

  std::vector<SampleLine> lines_;
  std::string raw_;
};

// The lines that every benchmark shares, around `own`; `quality` is the key of the quality.
inline SampleLog MakeSampleLog(const std::string& benchmark, const std::string& quality,
                               const std::string& value, std::vector<SampleLine> own) {
  const std::string epoch = "{\"epoch_num\": 1}";
  std::vector<SampleLine> lines = {{"submission_benchmark", absl::StrCat("\"", benchmark, "\"")},
                                   {"submission_org", "\"Org\""},
                                   {"submission_division", "\"closed\""},
                                   {"submission_status", "\"onprem\""},
                                   {"submission_platform", "\"Machine\""},
                                   {"cache_clear"},
                                   {"init_start"},
                                   {"number_of_nodes", "4"},
                                   {"accelerators_per_node", "8"}};
  lines.insert(lines.end(), own.begin(), own.end());
  const std::vector<SampleLine> run = {{"init_stop"},
                                       {"run_start"},
                                       {"epoch_start", "null", epoch},
                                       {"eval_start", "null", epoch},
                                       {quality, value, epoch},
                                       {"eval_stop", "null", epoch},
                                       {"epoch_stop", "null", epoch},
                                       {"run_stop", "null", "{\"status\": \"success\"}"}};
  lines.insert(lines.end(), run.begin(), run.end());
  return SampleLog(std::move(lines));
}

inline SampleLog CosmoflowLog() {
  return MakeSampleLog("cosmoflow", "eval_error", "0.12",
                       {{"train_samples", "524288"},
                        {"eval_samples", "65536"},
                        {"global_batch_size", "64"},
                        {"opt_name", "\"sgd\""},
                        {"opt_base_learning_rate", "0.001"},
                        {"opt_learning_rate_warmup_epochs", "4"},
                        {"opt_learning_rate_warmup_factor", "1"},
                        {"opt_learning_rate_decay_boundary_epochs", "[32, 64]"},
                        {"opt_learning_rate_decay_factor", "0.25"}});
}

inline SampleLog DeepcamLog() {
  return MakeSampleLog("deepcam", "eval_accuracy", "0.821",
                       {{"train_samples", "121266"},
                        {"eval_samples", "15158"},
                        {"gradient_accumulation_frequency", "1"},
                        {"seed", "7"},
                        {"global_batch_size", "1024"},
                        {"batchnorm_group_size", "1"},
                        {"opt_name", "\"AdamW\""},
                        {"opt_lr", "0.001"},
                        {"opt_betas", "[0.9, 0.999]"},
                        {"opt_eps", "1e-06"},
                        {"scheduler_type", "\"multistep\""},
                        {"scheduler_milestones", "[4096]"},
                        {"scheduler_decay_rate", "0.1"},
                        {"scheduler_lr_warmup_steps", "0"},
                        {"scheduler_lr_warmup_factor", "1"}});
}

}  // namespace assay::testing

#endif  // TESTS_RULES_SAMPLE_LOG_H_
