//! The shell of a page that needs nothing but itself.

use super::Figure;

/// A whole page.
pub(crate) fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escape(title)
    )
}

/// A figure with its caption.
pub(crate) fn show(figure: &Figure) -> String {
    // An SVG that stands inside HTML takes no XML declaration.
    let svg = figure.svg.find("<svg").map_or("", |at| &figure.svg[at..]);
    let (title, caption) = (escape(&figure.title), escape(&figure.caption));
    format!("<figure>\n<figcaption><b>{title}</b> {caption}</figcaption>\n{svg}\n</figure>\n")
}

/// Text as HTML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = "
:root { color-scheme: light; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #f4f4f2; }
main { max-width: 920px; margin: 0 auto; padding: 2rem 1.5rem 4rem; background: #fff; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; }
.verdict { border-left: 4px solid #0072b2; padding: .2rem 0 .2rem 1rem; font-size: 1.1rem; }
table { border-collapse: collapse; width: 100%; margin: 1.2rem 0; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .5rem; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child { text-align: left; }
thead th { border-bottom: 2px solid #999; font-weight: 600; }
tbody th { font-weight: 400; }
figure { margin: 2rem 0; }
figcaption { margin-bottom: .4rem; }
figure svg { width: 100%; height: auto; }
details { margin-top: 1.5rem; overflow-x: auto; }
summary { cursor: pointer; font-weight: 600; }
pre { background: #f4f4f2; padding: 1rem; overflow-x: auto; font-size: .85rem; }
";
