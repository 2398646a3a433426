#include "server/web/html.h"

#include <string>

#include "gtest/gtest.h"

namespace assay::web {
namespace {

std::string Escaped(absl::string_view text) {
  Html html;
  html.Text(text);
  return html.Take();
}

TEST(HtmlTest, ShowsMarkupOfOthersAsText) {
  EXPECT_EQ(Escaped("<script>alert('x' & \"y\")</script>"),
            "&lt;script&gt;alert(&#39;x&#39; &amp; &quot;y&quot;)&lt;/script&gt;");
  EXPECT_EQ(Escaped("Grüße, 日本"), "Grüße, 日本");
}

TEST(HtmlTest, ShowsWhatReadersWouldNotSee) {
  EXPECT_EQ(Escaped("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(Escaped(std::string("nul\0!", 5)), "nul\\x00!");
  EXPECT_EQ(Escaped("\u202Eevil\u2066"), "\\u202eevil\\u2066");
  EXPECT_EQ(Escaped("\xC3"), "\\xc3");       // cut off
  EXPECT_EQ(Escaped("\xFF<"), "\\xff&lt;");  // no UTF-8
  EXPECT_EQ(Escaped("\xC0\xBC"), "\\xc0\\xbc") << "an overlong <";
  EXPECT_EQ(Escaped("tab\tline\n"), "tab\tline\n");
  EXPECT_EQ(Escaped("bell\x07 return\r"), "bell\\x07 return\\r");
}

TEST(HtmlTest, KeepsAttributesWithinTheirQuotationMarks) {
  Html html;
  html.Raw("<p").Attribute("title", "\" onclick=\"x").Raw(">");
  EXPECT_EQ(html.Take(), "<p title=\"&quot; onclick=&quot;x\">");
}

TEST(HtmlTest, LinksToPathsOfThisSiteOnly) {
  const auto link = [](absl::string_view path) {
    Html html;
    html.Link(path, "a<b");
    return html.Take();
  };
  EXPECT_EQ(link("/entries/e-1?x=1&y=2"), "<a href=\"/entries/e-1?x=1&amp;y=2\">a&lt;b</a>");
  EXPECT_EQ(link("#L7"), "<a href=\"#L7\">a&lt;b</a>");
  for (const char* path : {"", "javascript:alert(1)", "//evil.example", "/\\evil.example",
                           "https://evil.example", "data:text/html,x"})
    EXPECT_EQ(link(path), "a&lt;b") << path;
}

TEST(HtmlTest, WritesCoordinatesShortly) {
  Html html;
  html.Coordinate(1.5).Raw(" ").Coordinate(2).Raw(" ").Coordinate(-0.001).Raw(" ").Coordinate(10);
  EXPECT_EQ(html.Take(), "1.5 2 0 10");
}

}  // namespace
}  // namespace assay::web
