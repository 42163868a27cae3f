//! Marks in a page of Markdown: a comment before and one after what a run writes.
//!
//! `<!-- peng: tally -->...<!-- /peng -->` stands within a line. An opening comment that is a line of its own has its
//! text, a table for example, on lines of its own.

use core::ops::Range;

use base::config::ConfigError;

/// A place in a page that a run fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark<'t> {
    /// The study whose run it is.
    pub(super) study: &'t str,
    /// Whether that is a quick run.
    pub(super) is_quick: bool,
    /// What the run writes there.
    pub(super) what: &'t str,
    /// Whether it has lines of its own.
    pub(super) is_block: bool,
    /// The opening comment.
    pub(super) opening: Range<usize>,
    /// What stands between the comments.
    pub(super) text: Range<usize>,
}

const OPEN: &str = "<!--";
const CLOSE: &str = "-->";

/// The marks of a page, in order. Other comments and what stands in code blocks are no marks.
pub(super) fn marks<'t>(file: &str, page: &'t str) -> Result<Vec<Mark<'t>>, ConfigError> {
    let mut found: Vec<Mark<'t>> = Vec::new();
    let mut open: Option<Mark<'t>> = None;
    for comment in comments(page) {
        let complain = |message: String| Err(ConfigError::at(file, page, comment.clone(), message));
        let inner = page[comment.start + OPEN.len()..comment.end - CLOSE.len()].trim();
        match (&mut open, closing(inner), opening(inner)) {
            (Some(mark), Some(study), _) if mark.study == study => {
                mark.text.end = comment.start;
                if let Some(fault) = fault(mark, page) {
                    return complain(fault.to_owned());
                }
                found.extend(open.take());
            }
            (Some(mark), Some(_), _) | (Some(mark), _, Some(_)) => {
                return complain(format!("{OPEN} /{} {CLOSE} has to come first", mark.study));
            }
            (None, Some(study), _) => return complain(format!("nothing of \"{study}\" ends here")),
            (None, None, Some((study, is_quick, what))) => {
                let is_block = comment.start == 0 || page[..comment.start].ends_with('\n');
                let text = comment.end..comment.end;
                open = Some(Mark { study, is_quick, what, is_block, opening: comment, text });
            }
            (_, None, None) => {}
        }
    }
    match open {
        None => Ok(found),
        Some(Mark { study, opening, .. }) => {
            let message = format!("{OPEN} /{study} {CLOSE} is missing");
            Err(ConfigError::at(file, page, opening, message))
        }
    }
}

/// What is wrong with the form of a mark.
fn fault(mark: &Mark<'_>, page: &str) -> Option<&'static str> {
    let text = &page[mark.text.clone()];
    match (mark.is_block, text.starts_with('\n') && text.ends_with('\n'), text.contains('\n')) {
        (true, false, _) => Some("a mark at the start of a line has its text on lines of its own"),
        (false, _, true) => Some("a mark within a line ends in it"),
        _ => None,
    }
}

/// The comments outside code blocks.
fn comments(page: &str) -> Vec<Range<usize>> {
    let (mut found, mut from, mut is_code) = (Vec::new(), 0, false);
    let mut line_start = 0;
    for line in page.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        let line_end = line_start + line.len();
        while !is_code && let Some(at) = page.get(from.max(line_start)..line_end).and_then(|it| it.find(OPEN))
        {
            let start = from.max(line_start) + at;
            let Some(length) = page[start..].find(CLOSE) else { return found };
            from = start + length + CLOSE.len();
            found.push(start..from);
        }
        line_start = line_end;
    }
    found
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// The study whose mark a comment ends.
fn closing(inner: &str) -> Option<&str> {
    inner.strip_prefix('/').filter(|name| is_name(name))
}

/// The study of a mark that begins, whether it is of a quick run, and what stands there.
fn opening(inner: &str) -> Option<(&str, bool, &str)> {
    let (who, what) = inner.split_once(": ")?;
    let (study, is_quick) = who.strip_suffix(" quick").map_or((who, false), |study| (study, true));
    is_name(study).then(|| (study, is_quick, what.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<!-- ANCHOR: start -->\n# Peng\n\nOf 16 claims **<!-- peng: tally -->10 hold<!-- /peng -->**.\n\n\
        <!-- peng quick: verdicts -->\n\n| a |\n\n<!-- /peng -->\n\n```text\n<!-- peng: tally -->\n```\n";

    #[test]
    fn marks_are_within_lines_or_have_their_own() {
        let found = marks("p.md", PAGE).unwrap();
        let told: Vec<_> = found
            .iter()
            .map(|mark| (mark.study, mark.is_quick, mark.what, mark.is_block, &PAGE[mark.text.clone()]))
            .collect();
        assert_eq!(
            told,
            [("peng", false, "tally", false, "10 hold"), ("peng", true, "verdicts", true, "\n\n| a |\n\n")]
        );
        assert_eq!(&PAGE[found[0].opening.clone()], "<!-- peng: tally -->");
    }

    #[test]
    fn what_does_not_end_as_it_should_is_told_with_its_line() {
        for (page, line, message) in [
            ("a\nb <!-- peng: tally -->10", 2, "<!-- /peng --> is missing"),
            ("a <!-- /peng -->", 1, "nothing of \"peng\" ends here"),
            ("a <!-- peng: tally -->1\n2<!-- /peng -->", 2, "a mark within a line ends in it"),
            ("<!-- peng: tally -->1<!-- /peng -->", 1, "has its text on lines of its own"),
            (
                "a <!-- peng: tally --><!-- kojo: tally --><!-- /kojo -->",
                1,
                "<!-- /peng --> has to come first",
            ),
            ("a <!-- peng: tally -->1<!-- /kojo -->", 1, "<!-- /peng --> has to come first"),
        ] {
            let error = marks("p.md", page).unwrap_err().to_string();
            assert!(error.starts_with(&format!("p.md:{line}")) && error.contains(message), "{page}: {error}");
        }
    }
}
