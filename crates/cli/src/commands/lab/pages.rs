//! Writing what a run came to into Markdown pages, or comparing it with what stands there.

use std::io;
use std::path::{Path, PathBuf};

use lab::study::StudyError;
use lab::study::published::{Difference, Filled, Published};

use crate::commands::outcome::complain;

/// Writes into every page below `places` that has marks of the run's study, or only compares if `check`; at how many marks they differ.
pub(crate) fn show(published: &Published<'_>, places: &[PathBuf], check: bool) -> Result<usize, StudyError> {
    let (mut differences, mut found) = (0, false);
    for page in all(places)? {
        let old = fs_err::read_to_string(&page)?;
        let Some(filled) = published.fill(&page, &old)? else { continue };
        found = true;
        match check {
            true => differences += compare(&page, &filled)?,
            false => write(&page, &old, &filled)?,
        }
    }
    if !found {
        complain("--pages: no page has a mark of this study");
    }
    Ok(differences)
}

fn compare(page: &Path, filled: &Filled) -> io::Result<usize> {
    for Difference { line, what, texts: (page_says, run_says) } in &filled.differences {
        complain(format_args!("{}:{line}: {what}", page.display()));
        complain(format_args!("    the page: {page_says}"));
        complain(format_args!("    the run:  {run_says}"));
    }
    let is_old =
        |(path, drawing): &&(PathBuf, String)| std::fs::read_to_string(path).ok().as_ref() != Some(drawing);
    let old: Vec<_> = filled.figures.iter().filter(is_old).collect();
    for (path, _) in &old {
        complain(format_args!("{}: the run draws another figure", path.display()));
    }
    Ok(filled.differences.len() + old.len())
}

fn write(page: &Path, old: &str, filled: &Filled) -> io::Result<()> {
    for (path, drawing) in &filled.figures {
        fs_err::write(path, drawing)?;
    }
    match old == filled.text {
        true => Ok(()),
        false => fs_err::write(page, &filled.text),
    }
}

/// The pages: files as they are, of directories the Markdown files in them.
fn all(places: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for place in places {
        if !place.is_dir() {
            pages.push(place.clone());
            continue;
        }
        let entries = fs_err::read_dir(place)?.map(|entry| entry.map(|entry| entry.path()));
        let mut found: Vec<PathBuf> = entries.collect::<io::Result<_>>()?;
        found.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
        found.sort();
        pages.extend(found);
    }
    Ok(pages)
}
