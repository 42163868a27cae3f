//! Pages that show what a run came to. What it writes stands between marks; a check compares what stands there.
//!
//! Marks of a quick run are compared whenever there is one. Those of full runs have two hashes beside them, at the mark `made`: of
//! what stands at them, so that a number that was changed by hand is found without a run, and of what the study asks and what answers,
//! so that a page whose program has changed since says so.

mod format;
mod marks;
mod shown;

use std::path::{Path, PathBuf};

use base::config::ConfigError;
use base::random::fnv1a;

use super::summary::Summary;
use super::{Outcome, Study, StudyError, figure};
use crate::drawing::{Figure, following};
use marks::{Mark, marks};
use shown::Shown;

/// What a run writes into pages.
#[derive(Debug)]
pub struct Published<'a> {
    outcome: &'a Outcome<'a>,
    summary: Summary<'a>,
    figures: Vec<Figure>,
    /// The hash of what the study asks and what answers today.
    code: String,
    /// The command of a full run.
    command: &'a str,
}

/// A page as the run has it.
#[derive(Clone, Debug, Default)]
pub struct Filled {
    /// Its text.
    pub text: String,
    /// Figures that belong to it: the files and what is in them.
    pub figures: Vec<(PathBuf, String)>,
    /// Where the page said something else.
    pub differences: Vec<Difference>,
}

/// A mark where page and run differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The line of the mark.
    pub line: usize,
    /// What stands there.
    pub what: String,
    /// The first line that differs: in the page, and as the run has it.
    pub texts: (String, String),
}

impl<'a> Published<'a> {
    /// Prepares what the run says. `command` repeats the study in full.
    ///
    /// # Errors
    /// The run is neither whole nor a whole quick one; a figure or table does not fit what was measured.
    pub fn new(outcome: &'a Outcome<'a>, command: &'a str) -> Result<Self, StudyError> {
        let code = format!("{:016x}", outcome.identity()?);
        Ok(Self {
            outcome,
            summary: Summary::new(outcome, None)?,
            figures: figure::figures(outcome)?,
            code,
            command,
        })
    }

    /// A page with what the run says at its marks; none if it has no mark of this study. `file` is where it is.
    ///
    /// # Errors
    /// A mark is wrong, or asks for what the study does not have.
    pub fn fill(&self, file: &Path, page: &str) -> Result<Option<Filled>, ConfigError> {
        let name = file.display().to_string();
        let all = marks(&name, page)?;
        let own: Vec<&Mark<'_>> = all.iter().filter(|mark| mark.study == self.outcome.study.name).collect();
        if own.is_empty() {
            return Ok(None);
        }
        let mut filled = Filled::default();
        let mut texts = Vec::new();
        for mark in &own {
            let complain = |message: String| ConfigError::at(&name, page, mark.opening.clone(), message);
            let shown = Shown::parse(mark.what).map_err(complain)?;
            shown.verify(self.outcome.study).map_err(complain)?;
            let old = &page[mark.text.clone()];
            let new = match mark.is_quick == self.outcome.plan.quick {
                true => shown.write(self.outcome, &self.summary).map_err(complain)?,
                false => None,
            };
            if let (Shown::Figure(id), false) = (&shown, self.outcome.plan.quick) {
                filled.figures.push(self.figure(id, file, old).map_err(complain)?);
            }
            texts.push((shown, new.map_or_else(|| old.to_owned(), |new| laid_out(mark, &new))));
        }
        let hash = hash_of(own.iter().copied().zip(texts.iter().map(|(_, text)| text.as_str())));
        let mut at = 0;
        for (mark, (shown, text)) in own.iter().zip(&texts) {
            filled.text += &page[at..mark.opening.start];
            let (opening, text) = match shown {
                Shown::Made(before) => self.made(mark, *before, &hash, &page[mark.text.clone()]),
                _ => (page[mark.opening.clone()].to_owned(), text.clone()),
            };
            let old = &page[mark.opening.start..mark.text.end];
            filled.differences.extend(difference(page, mark, old, &(opening.clone() + &text)));
            filled.text += &(opening + &text);
            at = mark.text.end;
        }
        filled.text += &page[at..];
        Ok(Some(filled))
    }

    /// The mark that says which run the page is of. A quick run knows only whether the program has changed since.
    fn made(&self, mark: &Mark<'_>, before: Option<(&str, &str)>, hash: &str, old: &str) -> (String, String) {
        let study = mark.study;
        let (code, hash, is_old) = match (self.outcome.plan.quick, before) {
            (false, _) => (self.code.as_str(), hash, false),
            (true, Some((code, hash))) => (code, hash, code != self.code),
            (true, None) => return (format!("<!-- {study}: made -->"), old.to_owned()),
        };
        let text = match is_old {
            false => format!(
                "Verdicts, tables and figures that the study decides are written by `{}`.",
                self.command
            ),
            true => format!(
                "> **Older than the program.** What `{}` wrote on this page was measured before the program changed; it \
                 prints other figures today.",
                self.command
            ),
        };
        (format!("<!-- {study}: made {code} {hash} -->"), laid_out(mark, &text))
    }

    /// The file of a figure and what belongs into it.
    fn figure(&self, id: &str, page: &Path, text: &str) -> Result<(PathBuf, String), String> {
        let named = text.split_once("](").and_then(|(_, rest)| rest.split_once(')')).map(|(path, _)| path);
        let path =
            named.filter(|path| path.ends_with(".svg")).ok_or("a figure's text shows an image, a .svg")?;
        let found = self.figures.iter().find(|found| found.name == figure::file_name(id));
        let found = found.ok_or_else(|| format!("figure {id} was not drawn"))?;
        let directory = page.parent().unwrap_or(Path::new(""));
        Ok((directory.join(path), following(&found.drawing.svg())))
    }
}

/// What is wrong with the marks of a page, as far as it can be told without a run.
///
/// # Errors
/// A mark is wrong, asks for what its study does not have, or stands for something else than a run wrote there.
pub fn check(studies: &[Study], file: &str, page: &str) -> Result<usize, ConfigError> {
    let all = marks(file, page)?;
    for mark in &all {
        let complain = |message: String| ConfigError::at(file, page, mark.opening.clone(), message);
        let study = studies.iter().find(|study| study.name == mark.study);
        let study = study.ok_or_else(|| complain(format!("no study \"{}\"", mark.study)))?;
        let shown = Shown::parse(mark.what).map_err(complain)?;
        shown.verify(study).map_err(complain)?;
        let own = || all.iter().filter(|other| other.study == mark.study);
        match shown {
            Shown::Made(None) => return Err(complain("no run has filled this page yet".to_owned())),
            Shown::Made(Some((_, hash)))
                if hash != hash_of(own().map(|own| (own, &page[own.text.clone()]))) =>
            {
                let message = "what stands at the marks of this page is not what a run wrote there";
                return Err(complain(message.to_owned()));
            }
            _ => {}
        }
        let is_made = |other: &Mark<'_>| matches!(Shown::parse(other.what), Ok(Shown::Made(_)));
        if !mark.is_quick && !own().any(is_made) {
            return Err(complain(format!("the page has no mark \"{}: made\"", mark.study)));
        }
    }
    Ok(all.len())
}

/// The hash of what stands at the marks of full runs.
fn hash_of<'m, 't: 'm>(texts: impl Iterator<Item = (&'m Mark<'t>, &'m str)>) -> String {
    let full = texts.filter(|(mark, _)| !mark.is_quick && !mark.what.starts_with("made"));
    let all: String = full.map(|(mark, text)| format!("{}\n{}\n", mark.what, text.trim())).collect();
    format!("{:016x}", fnv1a(all.as_bytes()))
}

/// A text as it stands at a mark.
fn laid_out(mark: &Mark<'_>, text: &str) -> String {
    match mark.is_block {
        true => format!("\n\n{}\n\n", text.trim()),
        false => text.trim().to_owned(),
    }
}

fn difference(page: &str, mark: &Mark<'_>, old: &str, new: &str) -> Option<Difference> {
    if old == new {
        return None;
    }
    let mut lines = old.lines().zip(new.lines());
    let first = lines.find(|(old, new)| old != new);
    let (old, new) =
        first.unwrap_or_else(|| (old.lines().last().unwrap_or(""), new.lines().last().unwrap_or("")));
    let line = 1 + page[..mark.opening.start].matches('\n').count();
    Some(Difference { line, what: mark.what.to_owned(), texts: (old.to_owned(), new.to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::probe::{Method, Probe};
    use crate::study::{Files, Plan};

    const WEIGHING: Probe = Probe {
        name: "weighing",
        version: 1,
        quantities: &["weight"],
        series: &[],
        method: Method::Trial(|trial, measured| {
            measured.set("weight", &[], 1.0 + trial.seed as f64 / 8.0);
            Ok(())
        }),
    };

    const STUDY: &str = "name = 'pears'\ntitle = ''\nclaims = 'claims'\nquick = { seeds = 2 }\n\
        [[reading]]\nname = 'grown'\nvalues = ['once', 'twice']\ndefault = 'once'\nreason = ''\n\
        [[experiment]]\nname = 'e'\naxes.kind = ['green', 'red']\naxes.n = [1, 2]\nseeds = 3\nprobes = ['weighing']\n\
        [[table]]\nid = 'all of them'\nfrom = 'e'\nrows = ['n', 'kind']\nvalue = 'weight'\npaper = '1.5'\n\
        [[figure]]\nid = '1-2'\ntitle = ''\nfrom = 'e'\nx = 'n'\ny = 'weight'\ncurve = 'kind'\n";
    const CLAIMS: &str = "[[claim]]\nid = 'pears-heavy'\nsection = '1'\nstatement = 'Pears are heavy.'\n\
        experiment = 'e'\ncheck = \"weight('red', 1) > 0.5\"\nkind = 'ordering'\n\
        [[claim]]\nid = 'pears-light'\nsection = '1'\nstatement = 'Pears are light.'\n\
        experiment = 'e'\ncheck = \"weight('red', 1) < 0.5\"\nkind = 'ordering'\nweaker = 'red ones alone'\n";
    const PAGE: &str = "# Pears\n\n<!-- pears: made -->\n\n<!-- /pears -->\n\n\
        **<!-- pears: tally --><!-- /pears -->** (<!-- pears: held pears-heavy --><!-- /pears -->, \
        <!-- pears: weight('red', 1) under grown = twice as 0.00 --><!-- /pears --> g); a red one has <!-- pears: weight('red', 1) as 0.0 ± --><!-- /pears --> g.\n\n\
        <!-- pears: table \"all of them\" by kind as 0.00 -->\n\n<!-- /pears -->\n\n\
        <!-- pears: verdicts -->\n\n<!-- /pears -->\n\n\
        <!-- pears: figure 1-2 -->\n\n![Pears](images/pears.svg)\n\n<!-- /pears -->\n\n\
        Quick: <!-- pears quick: weight('red', 1) as 0.00 --><!-- /pears -->. <!-- a remark -->\n";

    fn study() -> Study {
        let files: &'static [(&'static str, &'static str)] =
            &[("experiments.toml", STUDY), ("claims.toml", CLAIMS)];
        Study::load(Files::Embedded("pears", files), "experiments.toml", &[&WEIGHING]).unwrap()
    }

    fn fill(study: &Study, quick: bool, page: &str) -> Filled {
        let plan = Plan { quick, ..Plan::default() };
        let outcome = super::super::Sweep::prepare(study, plan).unwrap().run(|_| {}).unwrap();
        let published = Published::new(&outcome, "longhaul reproduce pears").unwrap();
        published.fill(Path::new("docs/pears.md"), page).unwrap().unwrap()
    }

    #[test]
    fn a_run_fills_its_marks_and_finds_nothing_to_say_the_second_time() {
        let study = study();
        let first = fill(&study, false, PAGE);
        for part in [
            "**<!-- pears: tally -->1 holds, 1 fails and 0 are undecided<!-- /pears -->**",
            "-->2 of 2<!-- /pears -->, ",
            "-->1.25<!-- /pears --> g); a",
            "-->1.2 (0.9 to 1.6)<!-- /pears --> g",
            "\n\n| n | green | red |\n|---|---|---|\n| 1 | 1.50 / 1.25 | 1.50 / 1.25 |\n",
            "| Pears are heavy. | 1.250 (0.9",
            " | holds | 2 of 2 |\n",
            " | fails (weaker: red ones alone) | 0 of 2 |\n",
            "Quick: <!-- pears quick: weight('red', 1) as 0.00 --><!-- /pears -->. <!-- a remark -->\n",
            "written by `longhaul reproduce pears`",
        ] {
            assert!(first.text.contains(part), "{part}\n{}", first.text);
        }
        assert_eq!(first.differences.len(), 7, "{:?}", first.differences);
        let [(path, drawing)] = &first.figures[..] else { panic!("{:?}", first.figures) };
        assert!(path == Path::new("docs/images/pears.svg") && drawing.starts_with("<svg"), "{drawing}");
        let second = fill(&study, false, &first.text);
        assert_eq!((second.text, second.differences), (first.text, Vec::new()));
    }

    #[test]
    fn a_number_that_was_changed_by_hand_is_found_with_and_without_a_run() {
        let study = study();
        let page = fill(&study, false, PAGE).text;
        let studies = core::slice::from_ref(&study);
        assert_eq!(check(studies, "p.md", &page).unwrap(), 9);
        let wrong = page.replace("| 1.50 / 1.25 | 1.50 / 1.25 |", "| 1.50 / 1.25 | 1.50 / 1.26 |");
        let fault = check(studies, "p.md", &wrong).unwrap_err().to_string();
        assert!(fault.starts_with("p.md:3") && fault.contains("not what a run wrote"), "{fault}");
        let [found] = &fill(&study, false, &wrong).differences[..] else { panic!() };
        assert!(found.what.starts_with("table") && found.texts.0.contains("1.26"), "{found:?}");
        // A quick run does not make the wrong number right.
        assert!(check(studies, "p.md", &fill(&study, true, &wrong).text).is_err());
        for (page, message) in [
            (PAGE.to_owned(), "no run has filled this page yet"),
            (page.replace("pears: made", "pears: count claims"), "count claims"),
            ("a <!-- plums: tally -->b<!-- /plums -->".to_owned(), "no study \"plums\""),
            ("a <!-- pears: tally -->b<!-- /pears -->".to_owned(), "no mark \"pears: made\""),
            (
                "a <!-- pears quick: weight('red', 1) under grown = thrice -->b<!-- /pears -->".to_owned(),
                "once, twice",
            ),
            ("a <!-- pears quick: height -->b<!-- /pears -->".to_owned(), "height"),
        ] {
            let fault = check(studies, "p.md", &page).unwrap_err().to_string();
            assert!(fault.contains(message), "{fault}");
        }
    }

    #[test]
    fn a_quick_run_fills_its_own_marks_and_says_when_the_program_has_changed() {
        let study = study();
        let full = fill(&study, false, PAGE).text;
        let quick = fill(&study, true, &full);
        assert_eq!(
            quick.text,
            full.replace("as 0.00 --><!-- /pears -->. <", "as 0.00 -->1.19<!-- /pears -->. <")
        );
        assert!(quick.figures.is_empty() && quick.differences.len() == 1, "{:?}", quick.differences);
        let (_, code) = full.split_once("pears: made ").unwrap();
        let (code, _) = code.split_once(' ').unwrap();
        let old = quick.text.replace(code, "0123456789abcdef");
        let told = fill(&study, true, &old);
        assert!(told.text.contains("> **Older than the program.**") && told.differences.len() == 1);
        assert!(check(core::slice::from_ref(&study), "p.md", &told.text).is_ok());
        assert_eq!(fill(&study, true, &told.text).differences, []);
        assert_eq!(fill(&study, false, &told.text).text, quick.text);
        // Nothing is known of a page that no full run has filled.
        assert!(fill(&study, true, PAGE).text.contains("<!-- pears: made -->\n\n<!-- /pears -->"));
    }
}
