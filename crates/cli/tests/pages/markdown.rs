//! As much of Markdown as it takes to find links and headings.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A page as the site has it: what it includes is in it.
#[derive(Debug)]
pub(crate) struct Page {
    /// Without blocks of code and comments.
    prose: Vec<String>,
}

impl Page {
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let included = text.lines().flat_map(|line| match line.strip_prefix("{{#include ") {
            Some(what) => include(path, what.trim_end_matches("}}")),
            None => vec![line.to_owned()],
        });
        let (mut prose, mut fenced, mut blank, mut indented) = (Vec::new(), false, true, false);
        for line in included {
            let is_fence = line.trim_start().starts_with("```");
            indented = line.starts_with("    ") && (blank || indented);
            blank = line.trim().is_empty();
            if !fenced && !is_fence && !indented {
                prose.push(without_comments(&line));
            }
            fenced ^= is_fence;
        }
        Self { prose }
    }

    /// Where links and images lead, those that lines define included.
    pub(crate) fn links(&self) -> Vec<String> {
        let inline = self.prose.iter().flat_map(|line| between(&without_code(line), "](", ')'));
        inline.chain(self.definitions().into_iter().map(|(_, target)| target)).collect()
    }

    /// The lines `[name]: target`.
    pub(crate) fn definitions(&self) -> Vec<(String, String)> {
        let definition = |line: &String| {
            let (name, target) = line.strip_prefix('[')?.split_once("]: ")?;
            Some((name.to_owned(), target.trim().to_owned()))
        };
        self.prose.iter().filter_map(definition).collect()
    }

    /// The names in `[text][name]` that no line defines.
    pub(crate) fn undefined(&self) -> Vec<String> {
        let known: BTreeSet<String> = self.definitions().into_iter().map(|(name, _)| name).collect();
        let mut used: Vec<String> =
            self.prose.iter().flat_map(|line| between(&without_code(line), "][", ']')).collect();
        used.retain(|name| !known.contains(name));
        used
    }

    /// The anchors of headings, as code hosts and mdBook make them.
    pub(crate) fn anchors(&self) -> BTreeSet<String> {
        let mut anchors = BTreeSet::new();
        for line in self.prose.iter().filter(|line| line.starts_with('#')) {
            let anchor = anchor(line.trim_start_matches('#').trim());
            let again = (1..).map(|n| format!("{anchor}-{n}"));
            let free = std::iter::once(anchor.clone()).chain(again).find(|it| !anchors.contains(it));
            anchors.insert(free.unwrap());
        }
        anchors
    }
}

/// The lines of `FILE` or `FILE:ANCHOR`, a path from the page at `from`.
fn include(from: &Path, what: &str) -> Vec<String> {
    let (file, anchor) = what.split_once(':').map_or((what, None), |(file, anchor)| (file, Some(anchor)));
    let text = fs::read_to_string(from.parent().unwrap().join(file)).unwrap();
    let part = anchor.map_or(text.as_str(), |name| {
        let (_, rest) = text.split_once(&format!("<!-- ANCHOR: {name} -->")).unwrap();
        rest.split_once(&format!("<!-- ANCHOR_END: {name} -->")).unwrap().0
    });
    part.lines().map(str::to_owned).collect()
}

fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// What stands in a line between `open` and the next `close`, each time.
fn between(line: &str, open: &str, close: char) -> Vec<String> {
    line.split(open).skip(1).filter_map(|rest| Some(rest.split_once(close)?.0.to_owned())).collect()
}

/// Letters, digits, `-` and `_` of a heading, in lower case, with `-` for each space. Of a link only its text counts.
fn anchor(heading: &str) -> String {
    let (mut text, mut rest) = (String::new(), heading);
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let kept = text.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[test]
fn headings_have_the_anchors_of_code_hosts() {
    for (heading, expected) in [
        ("`[status]`: how it is doing", "status-how-it-is-doing"),
        ("`harq`: link-level FEC and hybrid FEC/ARQ", "harq-link-level-fec-and-hybrid-fecarq"),
        ("See [the bound](bound.md) first", "see-the-bound-first"),
    ] {
        assert_eq!(anchor(heading), expected);
    }
}

/// A line without the comments in it; those over several lines stay.
fn without_comments(line: &str) -> String {
    let mut parts = line.split("<!--");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once("-->").map_or(part, |(_, after)| after))
}
