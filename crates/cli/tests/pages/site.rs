//! The site's links, in the HTML that mdBook writes.

use std::fs;
use std::path::Path;

/// The links of a page that lead nowhere in the site.
pub(crate) fn faults(site: &Path, page: &Path) -> Vec<String> {
    let html = fs::read_to_string(page).unwrap();
    let links = ["href=\"", "src=\""].into_iter().flat_map(|name| values(&html, name));
    links
        .filter_map(|link| Some(format!("{}: {link}: {}", page.display(), fault(site, page, &link)?)))
        .collect()
}

fn fault(site: &Path, page: &Path, link: &str) -> Option<String> {
    let elsewhere = ["http://", "https://", "mailto:", "data:", "javascript:"];
    if link.is_empty() || elsewhere.iter().any(|it| link.starts_with(it)) {
        return None;
    }
    let (file, anchor) = link.split_once('#').map_or((link, ""), |(file, anchor)| (file, anchor));
    let path = if file.is_empty() { page.to_owned() } else { page.parent().unwrap().join(file) };
    let Ok(path) = path.canonicalize() else { return Some("no such file".to_owned()) };
    if !path.starts_with(site.canonicalize().unwrap()) {
        return Some("leaves the site".to_owned());
    }
    if anchor.is_empty() || path.extension().is_none_or(|it| it != "html") {
        return None;
    }
    let html = fs::read_to_string(&path).unwrap();
    (!values(&html, "id=\"").iter().any(|id| id == anchor)).then(|| "no such anchor".to_owned())
}

/// The values of an attribute, which `name` ends with `="`.
fn values(html: &str, name: &str) -> Vec<String> {
    html.split(name).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
}
