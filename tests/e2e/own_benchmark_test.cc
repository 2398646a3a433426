// Rounds that declare a benchmark of their own, trained by somebody else's program: those that come
// with Assay (deploy/rounds, deploy/examples/python), small enough for a test. What they say of
// their quality is computed here once more, from the definition.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "tests/e2e/site.h"
#include "tests/support/official_checker.h"
#include "tests/support/status_matchers.h"
#include "tests/support/write_file.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Replacements = std::vector<std::pair<std::string, std::string>>;

class OwnBenchmarkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    python_ = ProvideOfficialChecker(&why_not);
    if (python_.empty()) GTEST_SKIP() << why_not;
    std::filesystem::copy(JoinPath(EXAMPLES, "python"), site_.Path("example"));
    std::filesystem::copy(JoinPath(EXAMPLES, "python/train"), site_.Path("example/train"));
  }

  // Copies a file of the project with other numbers, each of which must stand in it.
  void Adapt(const std::string& from, const std::string& to, const Replacements& replacements) {
    std::string text = ReadFile(from).value_or("");
    for (const auto& [is, becomes] : replacements) {
      ASSERT_THAT(text, HasSubstr(is)) << from;
      text = absl::StrReplaceAll(text, {{is, becomes}});
    }
    WriteFile(to, text);
  }

  // The round `name`-mini, a dataset for it, and its submission file.
  void Provide(const std::string& name, const Replacements& round, const Replacements& submission,
               std::vector<std::string> generate, std::vector<std::string> import) {
    Adapt(absl::StrCat(EXAMPLES, "/../rounds/", name, "-mini.toml"),
          site_.Path(absl::StrCat("share/assay/rounds/", name, "-mini.toml")), round);
    Adapt(absl::StrCat(EXAMPLES, "/python/", name, ".toml"), File(name), submission);
    coordinator_.emplace(&site_);
    const std::string folder = site_.Path(name);
    generate.insert(generate.begin(),
                    {python_, site_.Path(absl::StrCat("example/make_", name, ".py")), folder});
    const Outcome made = site_.RunProgram(generate);
    ASSERT_EQ(made.exit_code, 0) << made.Text();
    import.insert(import.begin(), {"dataset", "import", folder, "--benchmark", name});
    ASSERT_EQ(site_.Assay(import).exit_code, 0);
    ASSERT_EQ(site_.Assay({"dataset", "verify", folder}).exit_code, 0);
    ASSERT_EQ(site_.Assay({"dataset", "add", name, folder}).exit_code, 0);
  }
  std::string File(const std::string& name) { return site_.Path("example/" + name + ".toml"); }

  // Submits and looks at everything that a user looks at. Returns the first run.
  Json ExpectScored(const std::string& name) {
    const Outcome plan = site_.Assay({"plan", File(name)});
    EXPECT_EQ(plan.exit_code, 0) << plan.Text();
    const Outcome submitted = site_.Assay({"submit", File(name), "--wait"});
    EXPECT_EQ(submitted.exit_code, 0) << submitted.Text();
    EXPECT_EQ(site_.AssayJson({"entry", "show", "@last"})["state"], "valid") << submitted.Text();
    const Json score = site_.AssayJson({"score", "@last"});
    EXPECT_GT(score.value("score_minutes", 0.0), 0) << score;
    EXPECT_EQ(
        score["score_label"],
        absl::StrCat("not an MLPerf result: a facility's own round with a benchmark of its own, ",
                     name));
    ExpectPackage(name);
    const Json run = site_.AssayJson({"run", "show", "r-1"});
    EXPECT_EQ(run["converged"], true) << run;
    EXPECT_EQ(run["compliant"], true) << run;
    EXPECT_TRUE(run.contains("first_touch_us") || run.contains("observed_touch_us")) << run;
    return run;
  }
  void ExpectPackage(const std::string& name) {
    const Outcome exported = site_.Assay({"entry", "export", "@last", "package"});
    ASSERT_EQ(exported.exit_code, 0) << exported.Text();
    const std::string folder =
        site_.Path(absl::StrCat("package/Example_University/benchmarks/", name, "/this-host"));
    EXPECT_THAT(ReadFile(folder + "/README.md").value_or(""),
                HasSubstr("This is not an MLPerf result: a facility's own round"));
    const Outcome checked =
        site_.Assay({"rules", "check", "--round", absl::StrCat(name, "-mini"),
                     site_.Path(absl::StrCat("package/Example_University/results/this-host/strong/",
                                             name, "/result_1.txt"))});
    EXPECT_EQ(checked.exit_code, 0) << checked.Text();
  }

  Site site_;
  std::string python_;
  std::optional<Coordinator> coordinator_;
};

// ------------------------------------------------------------------------------------ words

// What language.json says, as make_words.py documents it.
struct Language {
  std::vector<std::string> words;
  std::vector<double> law;
  std::vector<size_t> kinds;
  std::vector<std::vector<size_t>> orders;
  double nats_per_token = 0;
  std::string alphabet;

  explicit Language(const std::string& path) {
    const Json json = Json::parse(ReadFile(path).value_or(""));
    words = json["words"].get<std::vector<std::string>>();
    law = json["probabilities"].get<std::vector<double>>();
    kinds = json["kinds"].get<std::vector<size_t>>();
    orders = json["orders"].get<std::vector<std::vector<size_t>>>();
    nats_per_token = json["nats_per_token"];
    alphabet = json["alphabet"];
  }
  size_t Place(size_t word, const std::string& next) const {
    const std::vector<size_t>& order = orders[kinds[word]];
    size_t place = 0;
    while (words[order[place]] != next)
      ++place;
    return place;
  }
  // From the definition: entropy of a word over the mean length of one.
  double NatsPerToken() const {
    double entropy = 0;
    for (const double p : law)
      entropy -= p * std::log(p);
    std::vector<double> share(words.size(), 1.0 / static_cast<double>(words.size()));
    for (int round = 0; round < 2000; ++round) {
      std::vector<double> next(words.size(), 0);
      for (size_t word = 0; word < words.size(); ++word)
        for (size_t place = 0; place < words.size(); ++place)
          next[orders[kinds[word]][place]] += share[word] * law[place];
      share = next;
    }
    double length = 0;
    for (size_t word = 0; word < words.size(); ++word)
      length += share[word] * static_cast<double>(words[word].size() + 1);
    return entropy / length;
  }
  // What whoever knows the language needs for each token of this very text.
  double NatsPerTokenOf(const std::string& path) const {
    const std::string bytes = ReadFile(path).value_or("");
    std::string word;
    size_t before = 0;
    double nats = 0;
    double tokens = 0;
    for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
      const char letter = alphabet[static_cast<unsigned char>(bytes[i])];
      if (letter != ' ') {
        word += letter;
        continue;
      }
      const size_t place = Place(before, word);
      nats -= std::log(law[place]);
      tokens += static_cast<double>(word.size() + 1);
      before = orders[kinds[before]][place];
      word.clear();
    }
    return nats / tokens;
  }
};

TEST_F(OwnBenchmarkTest, ALanguageModelComesCloseToTheEntropyOfItsText) {
  Provide("words", {{"target = 2.076", "target = 1.59"}, {"250_000", "60000"}, {"65_536", "8192"}},
          {{"staging ", "epochs_max = 40\nstaging "},
           {"\"python3\"", absl::StrCat("\"", python_, "\"")},
           {"global_batch_size = 1024", "global_batch_size = 512"},
           {"opt_base_learning_rate = 0.003", "opt_base_learning_rate = 0.005"},
           {"sequence_length = 64", "sequence_length = 32"},
           {"embedding_size = 64", "embedding_size = 32"},
           {"layer_count = 2", "layer_count = 1"},
           {"head_count = 4", "head_count = 2"}},
          {"--train", "60000", "--eval", "8192", "--words", "16", "--kinds", "2"},
          {"--train", "60000", "--eval", "8192"});

  const Json run = ExpectScored("words");

  const Language language(site_.Path("words/language.json"));
  EXPECT_NEAR(language.nats_per_token, language.NatsPerToken(), 1e-9);
  const double best = language.NatsPerTokenOf(site_.Path("words/validation/tokens.bin"));
  EXPECT_NEAR(best, language.nats_per_token, 0.03);
  const double nats = std::log(run["quality"].get<double>());
  EXPECT_GT(nats, 0.99 * best) << "better than the language itself";
  EXPECT_LT(nats, std::log(1.59) + 1e-9);
  // A sample is a token, so rates are tokens a second.
  const Outcome logs = site_.Assay({"logs", "r-1"});
  EXPECT_THAT(logs.out, HasSubstr("train_tokens_per_second"));
  const Json compute = site_.AssayJson({"analyze", "compute", "@last"});
  EXPECT_THAT(compute.dump(), HasSubstr("train_samples_per_second")) << compute;
}

TEST_F(OwnBenchmarkTest, WhatTheRoundDoesNotAllowIsFoundBeforeItRuns) {
  Provide("words", {{"250_000", "4000"}, {"65_536", "2000"}},
          {{"layer_count = 2", "layer_count = 5"}, {"\"open\"", "\"closed\""}},
          {"--train", "4000", "--eval", "1000"}, {"--train", "4000", "--eval", "1000"});

  const Outcome plan = site_.Assay({"plan", File("words")});

  EXPECT_EQ(plan.exit_code, 3) << plan.Text();
  EXPECT_THAT(plan.err,
              AllOf(HasSubstr("error R-FAC-005"), HasSubstr("layer_count"),
                    HasSubstr("15:16: error R-FAC-002: dataset = 1000 eval_samples, expected 2000"),
                    Not(HasSubstr("R-FAC-001"))));
  const std::string text = ReadFile(File("words")).value_or("");
  WriteFile(File("words"), absl::StrReplaceAll(text, {{"[workload]", "[labels]"},
                                                      {"command = [\"python3\", ", "a = \"b\" # "},
                                                      {"source ", "b "}}));
  const Outcome native = site_.Assay({"plan", File("words")});
  EXPECT_NE(native.exit_code, 0);
  EXPECT_THAT(native.err, HasSubstr("unknown hyperparameter 'vocabulary_size'"));
}

// ----------------------------------------------------------------------------------- shapes

// For each distinct score the images that have at least that much: the area below precision over
// recall, in steps.
double AveragePrecision(const std::vector<double>& scores, const std::vector<double>& labels) {
  const double all = std::accumulate(labels.begin(), labels.end(), 0.0);
  std::vector<double> thresholds = scores;
  std::sort(thresholds.begin(), thresholds.end(), std::greater<>());
  thresholds.erase(std::unique(thresholds.begin(), thresholds.end()), thresholds.end());
  double area = 0;
  double recall_before = 0;
  for (const double threshold : thresholds) {
    double found = 0;
    double hits = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      if (scores[i] < threshold) continue;
      found += 1;
      hits += labels[i];
    }
    area += (hits / all - recall_before) * hits / found;
    recall_before = hits / all;
  }
  return area;
}

// Scores with ties, rare labels and a class that does not occur.
constexpr char kAverages[] = R"(
import json, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from shapes import mean_average_precision
random = np.random.default_rng(3)
labels = (random.random((60, 8)) < 0.15).astype(float)
labels[:, 5] = 0
scores = np.round(random.normal(size=labels.shape) + labels, 1)
print(json.dumps({"scores": scores.T.tolist(), "labels": labels.T.tolist(),
                  "mean": mean_average_precision(scores, labels)}))
)";

TEST_F(OwnBenchmarkTest, TheMeanAveragePrecisionIsThatOfItsDefinition) {
  const Outcome outcome = site_.RunProgram({python_, "-c", kAverages, site_.Path("example/train")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.Text();
  const Json json = Json::parse(outcome.out);

  double sum = 0;
  double classes = 0;
  for (size_t i = 0; i < json["scores"].size(); ++i) {
    const auto labels = json["labels"][i].get<std::vector<double>>();
    if (std::accumulate(labels.begin(), labels.end(), 0.0) == 0) continue;
    sum += AveragePrecision(json["scores"][i].get<std::vector<double>>(), labels);
    classes += 1;
  }
  EXPECT_EQ(classes, 7);
  EXPECT_NEAR(json["mean"].get<double>(), sum / classes, 1e-12);
}

TEST_F(OwnBenchmarkTest, ImagesWithSeveralLabelsAreClassified) {
  Provide("shapes",
          {{"equals = 4096", "equals = 512"},
           {"equals = 1024", "equals = 256"},
           {"equals = 54", "equals = 10"}},
          {{"staging ", "epochs_max = 30\nstaging "},
           {"\"python3\"", absl::StrCat("\"", python_, "\"")},
           {"global_batch_size = 64", "global_batch_size = 32"},
           {"opt_base_learning_rate = 0.005", "opt_base_learning_rate = 0.01"},
           {"class_count = 54", "class_count = 10"},
           {"base_filter_count = 16", "base_filter_count = 8"}},
          {"--train", "512", "--eval", "256", "--edge", "16", "--textures", "2", "--colours", "4"},
          {});

  const Json run = ExpectScored("shapes");

  EXPECT_GE(run["quality"].get<double>(), 0.8);
  EXPECT_LT(run["quality"].get<double>(), 1);
}

}  // namespace
}  // namespace assay::testing
