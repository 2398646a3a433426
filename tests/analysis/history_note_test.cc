#include "common/analysis/history_note.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::analysis {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

EntryNote Note(const std::string& text, int64_t time_ms = 1, const std::string& organization = "") {
  return {.author = "ada", .organization = organization, .time_ms = time_ms, .text = text};
}

TEST(HistoryNoteTest, DecisionsComeBackAsTheyWereSaid) {
  for (const auto kind : {ChangeDecision::Kind::kMark, ChangeDecision::Kind::kVeto}) {
    for (const std::optional<Measure> measure :
         {std::optional<Measure>(), std::optional(Measure::kEpochSeconds)}) {
      const std::string text =
          *NoteText(ChangeDecision{.kind = kind, .measure = measure, .reason = "why: so"});

      const auto decisions =
          DecisionsOf(std::vector<NotedEntry>{{.id = "e-7", .notes = {Note(text, 5, "LBNL")}}});

      ASSERT_THAT(decisions, SizeIs(1)) << text;
      EXPECT_EQ(decisions[0].kind, kind);
      EXPECT_EQ(decisions[0].measure, measure);
      EXPECT_EQ(decisions[0].reason, "why: so");
      EXPECT_EQ(decisions[0].set, "e-7");
      EXPECT_EQ(decisions[0].author, "ada");
      EXPECT_EQ(decisions[0].organization, "LBNL");
      EXPECT_EQ(decisions[0].time_ms, 5);
    }
  }
}

TEST(HistoryNoteTest, OtherNotesAreNoDecisions) {
  const std::vector<NotedEntry> entries = {
      {.id = "e-1",
       .notes = {Note("rerun after the switch was replaced"), Note("[history] change: x"),
                 Note("[history] change weight: x"), Note("[history] "), Note(""),
                 Note("[history] alias planet \"a\" is \"b\": c"),
                 Note("[history] alias system \"a\" is \"\": c"),
                 Note("[history] alias system \"a is b")}}};

  EXPECT_THAT(DecisionsOf(entries), IsEmpty());
  EXPECT_THAT(Aliases(entries).All(), IsEmpty());
}

TEST(HistoryNoteTest, NeedsAReasonAndPlainNames) {
  EXPECT_EQ(NoteText(ChangeDecision{.reason = " "}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(NoteText(NameAlias{.name = "a\"b", .known_as = "c", .reason = "d"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(NoteText(NameAlias{.name = "a", .known_as = "c\n", .reason = "d"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

std::string AliasText(NameAlias::Kind kind, const std::string& name, const std::string& known_as) {
  return *NoteText(NameAlias{.kind = kind, .name = name, .known_as = known_as, .reason = "one"});
}

TEST(AliasesTest, TheLastHoldsAndWithdrawalsToo) {
  const auto kSystem = NameAlias::Kind::kSystem;
  NotedEntry entry = {.id = "e-1", .organization = "TACC", .system = "frontera-rtx"};
  entry.notes = {Note(AliasText(kSystem, "frontera-rtx", "F"), 1),
                 Note(AliasText(kSystem, "frontera-rtx", "Frontera"), 2)};

  const Aliases two(std::vector<NotedEntry>{entry});
  entry.notes.push_back(Note(AliasText(kSystem, "frontera-rtx", ""), 3));
  const Aliases withdrawn(std::vector<NotedEntry>{entry});

  EXPECT_EQ(two.SystemOf("TACC", "frontera-rtx"), "Frontera");
  EXPECT_EQ(two.SystemOf("LBNL", "frontera-rtx"), "frontera-rtx");
  EXPECT_EQ(two.OrganizationOf("TACC"), "TACC");
  ASSERT_THAT(two.All(), SizeIs(1));
  EXPECT_EQ(two.All()[0].author, "ada");
  EXPECT_THAT(withdrawn.All(), IsEmpty());
}

TEST(AliasesTest, NobodyTakesTheNameOfAnother) {
  const auto kOrganization = NameAlias::Kind::kOrganization;
  const std::vector<NotedEntry> entries = {
      // A submitter names his organisation otherwise: not his to say.
      {.organization = "X",
       .system = "x1",
       .notes = {Note(AliasText(kOrganization, "X", "NVIDIA"), 1, "X"),
                 // Of a name that the entry does not bear.
                 Note(AliasText(kOrganization, "Y", "NVIDIA"), 1),
                 Note(AliasText(NameAlias::Kind::kSystem, "y1", "z"), 1)}},
      {.organization = "tacc",
       .system = "f",
       .notes = {Note(AliasText(kOrganization, "tacc", "TACC"), 1)}}};

  const Aliases aliases(entries);

  EXPECT_EQ(aliases.OrganizationOf("X"), "X");
  EXPECT_EQ(aliases.OrganizationOf("Y"), "Y");
  EXPECT_EQ(aliases.SystemOf("X", "y1"), "y1");
  EXPECT_EQ(aliases.OrganizationOf("tacc"), "TACC");
}

}  // namespace
}  // namespace assay::analysis
