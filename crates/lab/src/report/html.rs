//! The shell of a page that needs nothing but itself.

use crate::drawing::{Figure, dark_rules};

/// A whole page. Tables get boxes in which they scroll, so that the page is never wider than a phone.
pub(crate) fn document(title: &str, body: &str) -> String {
    let body = body
        .replace("<table>", "<div class=\"scroll\" tabindex=\"0\"><table>")
        .replace("</table>", "</table></div>");
    let dark = dark_rules();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
         <style>{STYLE}@media (prefers-color-scheme: dark) {{\n{DARK}{dark}}}\n</style>\n\
         </head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escape(title)
    )
}

/// A figure with its caption, and the way to its files.
pub(crate) fn show(figure: &Figure) -> String {
    // An SVG that stands inside HTML takes no XML declaration.
    let svg = figure.drawing.svg();
    let svg = svg.find("<svg").map_or("", |at| &svg[at..]);
    let (title, caption, name) = (escape(&figure.title), escape(&figure.caption), escape(&figure.name));
    format!(
        "<figure>\n<figcaption><b>{title}</b> {caption}</figcaption>\n{svg}\n\
         <p class=\"files\"><a href=\"{name}-paper.svg\">SVG for a paper</a>, <a href=\"{name}.csv\">data</a></p>\n</figure>\n"
    )
}

/// Text as HTML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1a1a1a; --page: #ffffff; --around: #f4f4f2; --rule: #ddd; --strong-rule: #999;
  --link: #0060a0; --mark: #0072b2; --holds: #00704f; --fails: #b34700; --undecided: #666; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--around); overflow-wrap: anywhere; }
main { max-width: 920px; margin: 0 auto; padding: 2rem 1.5rem 4rem; background: var(--page); }
@media (max-width: 600px) { main { padding: 1rem .8rem 3rem; } }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; }
a { color: var(--link); }
.verdict { border-left: 4px solid var(--mark); padding: .2rem 0 .2rem 1rem; font-size: 1.1rem; }
.holds { color: var(--holds); } .fails { color: var(--fails); } .undecided { color: var(--undecided); }
.scroll { overflow-x: auto; margin: 1.2rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { padding: .35rem .5rem; text-align: right; border-bottom: 1px solid var(--rule); }
th:first-child, td:first-child { text-align: left; min-width: 8rem; }
thead th { border-bottom: 2px solid var(--strong-rule); font-weight: 600; }
tbody th { font-weight: 400; }
figure { margin: 2rem 0; }
figcaption { margin-bottom: .4rem; }
figure svg { display: block; width: 100%; height: auto; }
.files { margin: .2rem 0 0; font-size: .85rem; }
details { margin-top: 1.5rem; }
summary { cursor: pointer; font-weight: 600; }
pre { background: var(--around); padding: 1rem; overflow-x: auto; font-size: .85rem; }
";

/// What the page changes on a dark background; figures have rules of their own.
const DARK: &str = "\
:root { --ink: #e6e6e6; --page: #16181d; --around: #0e0f12; --rule: #3a3d45; --strong-rule: #777; --link: #7cc4ff;
  --mark: #56b4e9; --holds: #2cc79a; --fails: #ff9550; --undecided: #aaa; }
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_a_box_to_scroll_in() {
        let page = document("a", "<table><tr></tr></table><table></table>");
        assert_eq!(page.matches("<div class=\"scroll\" tabindex=\"0\"><table>").count(), 2);
        assert_eq!(page.matches("</table></div>").count(), 2);
    }
}
