//! All peers of a configuration: those in its file, and those in files of their own in the directory `peers.d` beside it.

use core::ops::Range;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use base::Prefix;
use base::config::{self, ConfigError};
use serde::Deserialize;
use toml::Spanned;
use tunnel::config::{Complaint, LinkPlaces, Place};
use zeroize::Zeroizing;

use super::overlay::{self, Tables};
use super::peer::{Peer, PeerName, Written};
use super::{Carrier, Config, Destination, IPV6_MTU, Udp};

/// The directory beside the configuration whose files ending in `.toml` are read too, a peer each.
pub const DIRECTORY: &str = "peers.d";

/// A text that is read, and what it is the content of.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    /// The path as complaints have it.
    pub(super) file: String,
    pub(super) text: Zeroizing<String>,
    /// Where its lines end.
    line_ends: Vec<usize>,
}

impl Source {
    pub(super) fn new(path: &Path, text: &str) -> Self {
        let line_ends = text.bytes().enumerate().filter_map(|(at, byte)| (byte == b'\n').then_some(at));
        let line_ends = line_ends.collect();
        Self {
            path: path.to_owned(),
            file: path.display().to_string(),
            text: text.to_owned().into(),
            line_ends,
        }
    }

    /// The number of the line with the byte at `at`.
    fn line(&self, at: usize) -> usize {
        self.line_ends.partition_point(|end| *end < at) + 1
    }

    pub(super) fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = Zeroizing::new(std::fs::read_to_string(path).map_err(|error| complaint(path, error))?);
        Ok(Self::new(path, &text))
    }

    /// The files in `peers.d` beside it, in the order of their names. Hidden ones are those of editors and of tools at work.
    pub(super) fn peer_files(&self) -> Result<Vec<PathBuf>, ConfigError> {
        let directory = self.path.parent().unwrap_or(Path::new("")).join(DIRECTORY);
        let listed = std::fs::read_dir(&directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = match listed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed.map_err(|error| complaint(&directory, error))?,
        };
        let paths = entries.into_iter().map(|entry| entry.path());
        let is_peer = |path: &PathBuf| {
            let is_hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
            !is_hidden && path.extension().is_some_and(|ending| ending == "toml")
        };
        let mut paths: Vec<_> = paths.filter(is_peer).collect();
        paths.sort_unstable();
        Ok(paths)
    }
}

fn complaint(path: &Path, error: io::Error) -> ConfigError {
    ConfigError::about(&path.display().to_string(), error)
}

/// A peer as it was written, and where.
pub(super) struct Draft<'a> {
    source: &'a Source,
    /// Where its table is; empty if it is the file.
    span: Range<usize>,
    written: Written,
    places: Places,
    tables: Tables,
    /// What it is called if it does not say so.
    stem: Option<String>,
}

/// Where the values lie that are checked together.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Places {
    name: Option<Place>,
    public_key: Option<Place>,
    preshared_key: Option<Place>,
    allowed: Vec<Place>,
    endpoint: Option<Place>,
    pin_endpoint: Option<Place>,
    link: LinkPlaces,
}

/// The peers of a configuration's file, as a `T`.
#[derive(Deserialize)]
struct Site<T> {
    #[serde(default = "Vec::new")]
    peer: Vec<T>,
}

impl<'a> Draft<'a> {
    /// Those of a configuration.
    pub(super) fn of_site(source: &'a Source) -> Result<Vec<Self>, ConfigError> {
        let Source { file, text, .. } = source;
        let peers: Site<Spanned<Written>> = config::parse(file, text)?;
        let places: Site<Places> = config::parse(file, text)?;
        let tables: Site<Tables> = config::parse(file, text)?;
        let parts = peers.peer.into_iter().zip(places.peer).zip(tables.peer);
        let draft = |((written, places), tables): ((Spanned<Written>, _), _)| Self {
            source,
            span: written.span(),
            written: written.into_inner(),
            places,
            tables,
            stem: None,
        };
        Ok(parts.map(draft).collect())
    }

    /// That of a file of its own.
    pub(super) fn of_file(source: &'a Source) -> Result<Self, ConfigError> {
        let Source { file, text, path, .. } = source;
        Ok(Self {
            source,
            span: 0..0,
            written: config::parse(file, text)?,
            places: config::parse(file, text)?,
            tables: config::parse(file, text)?,
            stem: path.file_stem().map(|stem| stem.to_string_lossy().into_owned()),
        })
    }

    /// Where a value is, or else the peer's table, if it has one.
    fn span(&self, place: Option<&Place>) -> Option<Range<usize>> {
        place.map(Spanned::span).or_else(|| (!self.span.is_empty()).then(|| self.span.clone()))
    }

    /// A complaint about a value, or about the peer.
    fn at(&self, place: Option<&Place>, message: impl core::fmt::Display) -> ConfigError {
        let Source { file, text, .. } = self.source;
        match self.span(place) {
            Some(span) => ConfigError::at(file, text, span, message),
            None => ConfigError::about(file, message),
        }
    }

    /// Turns a complaint about the peer called `name` into an error that names the peer, at the value complained
    /// about, or at the peer if the complaint has no place.
    fn about(&self, name: &PeerName, complaint: Complaint) -> ConfigError {
        let message = format!("peer \"{name}\": {}", complaint.message());
        let placed = complaint.in_file(&self.source.file, &self.source.text);
        if placed.line.is_some() { ConfigError { message, ..placed } } else { self.at(None, message) }
    }

    /// File and line of a value, for a complaint about another one.
    fn whereabouts(&self, place: Option<&Place>) -> String {
        let Source { file, .. } = self.source;
        self.line(place).map_or(file.clone(), |line| format!("{file}:{line}"))
    }

    fn line(&self, place: Option<&Place>) -> Option<usize> {
        self.span(place).map(|span| self.source.line(span.start))
    }

    /// What it is called, one of `count` peers.
    fn name(&self, count: usize) -> Result<PeerName, ConfigError> {
        match (&self.written.name, &self.stem) {
            (Some(name), _) => Ok(name.clone()),
            (None, Some(stem)) => stem.parse().map_err(|error| {
                self.at(None, format!("{error}; rename the file, or say name = \"…\" in it"))
            }),
            (None, None) if count == 1 => Ok(PeerName::default()),
            (None, None) => {
                Err(self.at(None, "a peer without a name; where there are several, each needs name = \"…\""))
            }
        }
    }
}

/// The peers of `config`, which has none yet, with all that follows for them.
///
/// # Errors
/// What is wrong with one of them, or between two.
pub(super) fn resolve(
    config: &Config,
    tables: &Tables,
    drafts: &[Draft<'_>],
) -> Result<Vec<Peer>, ConfigError> {
    let count = drafts.len();
    let names = drafts.iter().map(|draft| draft.name(count)).collect::<Result<Vec<_>, _>>()?;
    check_distinct(drafts, &names)?;
    for (draft, name) in drafts.iter().zip(&names) {
        check_one(config, draft, name, count)?;
    }
    check_allowed(drafts, &names)?;
    drafts.iter().zip(names).map(|(draft, name)| resolve_one(config, tables, draft, name)).collect()
}

/// A peer with what follows for it from the rest of the configuration.
fn resolve_one(
    config: &Config,
    tables: &Tables,
    draft: &Draft<'_>,
    name: PeerName,
) -> Result<Peer, ConfigError> {
    let mut peer = Peer::from(draft.written.clone());
    let file = &draft.source.file;
    let named = |error: ConfigError| draft.at(None, format!("peer \"{name}\": {}", error.message));
    peer.link = match &draft.tables.link {
        None => config.link,
        Some(own) => overlay::read(file, tables.link(own)).map_err(named)?,
    };
    peer.pep = match &draft.tables.pep {
        None => config.pep.clone(),
        Some(own) => overlay::read(file, tables.pep(own)).map_err(named)?,
    };
    if draft.tables.link.is_some() {
        config.carrier.complete(&mut peer.link);
        let checked = config.check_link(&peer.link, &draft.places.link);
        checked.map_err(|complaint| draft.about(&name, complaint))?;
    }
    peer.name = name;
    peer.origin.clone_from(&draft.source.path);
    peer.line = draft.line(draft.places.public_key.as_ref());
    peer.beside(&draft.source.path);
    Ok(peer)
}

/// Refuses two peers of one name or key.
fn check_distinct(drafts: &[Draft<'_>], names: &[PeerName]) -> Result<(), ConfigError> {
    let (mut by_name, mut by_key) = (BTreeMap::new(), BTreeMap::new());
    for (at, (draft, name)) in drafts.iter().zip(names).enumerate() {
        if let Some(other) = by_name.insert(name, at).map(|other| &drafts[other]) {
            let there = other.whereabouts(other.places.name.as_ref());
            let message = format!(
                "two peers are called \"{name}\", the other at {there}; allowed are names that differ"
            );
            return Err(draft.at(draft.places.name.as_ref(), message));
        }
        if let Some(other) = by_key.insert(draft.written.public_key, at) {
            let (there, whose) =
                (drafts[other].whereabouts(drafts[other].places.public_key.as_ref()), &names[other]);
            let message = format!(
                "peer \"{name}\" has the public key of peer \"{whose}\" at {there}; allowed are keys that differ"
            );
            return Err(draft.at(draft.places.public_key.as_ref(), message));
        }
    }
    Ok(())
}

/// Refuses what a peer of `count` cannot be on this carrier and this device.
fn check_one(config: &Config, draft: &Draft<'_>, name: &PeerName, count: usize) -> Result<(), ConfigError> {
    let Draft { written, places, .. } = draft;
    if written.preshared_key_file.is_some() && written.preshared_key.is_some() {
        let message = format!(
            "peer \"{name}\" has both preshared-key-file and preshared-key; allowed is only one of them"
        );
        return Err(draft.at(places.preshared_key.as_ref(), message));
    }
    match (&config.carrier, &written.endpoint) {
        (Carrier::Serial(_), _) if count > 1 => {
            let message = format!("{count} peers, but a serial line has one other end; allowed is one peer");
            return Err(draft.at(None, message));
        }
        (Carrier::Serial(_), Some(_)) => {
            let message =
                format!("peer \"{name}\" is at the other end of the serial line; allowed is no endpoint");
            return Err(draft.at(places.endpoint.as_ref(), message));
        }
        (Carrier::Udp(Udp { listen, .. }), Some(Destination::Address(endpoint)))
            if endpoint.is_ipv4() != listen.is_ipv4() =>
        {
            let message = format!(
                "peer \"{name}\" cannot be reached from {listen}; allowed is the same address family for both"
            );
            return Err(draft.at(places.endpoint.as_ref(), message));
        }
        (Carrier::Udp(_), None) if written.pin_endpoint => {
            let message = format!(
                "pin-endpoint of peer \"{name}\" needs an endpoint; allowed is pin-endpoint = false, or an endpoint"
            );
            return Err(draft.at(places.pin_endpoint.as_ref(), message));
        }
        _ => {}
    }
    let mtu = config.tun.mtu.0;
    let allowed = written.allowed.iter().flatten();
    if mtu < IPV6_MTU
        && let Some((_, place)) = allowed.zip(&places.allowed).find(|(prefix, _)| prefix.address.is_ipv6())
    {
        return Err(draft.at(Some(place), super::too_narrow_for_ipv6(mtu)));
    }
    if count > 1 && written.allowed.is_none() {
        let message = format!(
            "peer \"{name}\" does not say which networks are behind it; with several peers each needs \
             allowed = [\"10.78.0.0/16\"] or the like"
        );
        return Err(draft.at(None, message));
    }
    Ok(())
}

/// Refuses networks that two peers have, and networks that one has twice.
fn check_allowed(drafts: &[Draft<'_>], names: &[PeerName]) -> Result<(), ConfigError> {
    let of = |at: usize| drafts[at].written.allowed.iter().flatten().zip(&drafts[at].places.allowed);
    let mut all: Vec<(Prefix, usize, &Place)> =
        (0..drafts.len()).flat_map(|at| of(at).map(move |(prefix, place)| (*prefix, at, place))).collect();
    // Whatever holds a network comes before it, and all between the two is in the first.
    all.sort_by_key(|(prefix, at, _)| -> (IpAddr, u8, usize) { (prefix.masked(), prefix.len, *at) });
    let mut around: Vec<(Prefix, usize, &Place)> = Vec::new();
    for (prefix, at, place) in all {
        while around.pop_if(|(outer, ..)| !outer.overlaps(prefix)).is_some() {}
        let Some((outer, whose, there)) = around.last().copied() else {
            around.push((prefix, at, place));
            continue;
        };
        let is_same = (outer.masked(), outer.len) == (prefix.masked(), prefix.len);
        if whose == at && is_same {
            let message = format!("{prefix} is there twice; allowed is each network once");
            return Err(drafts[at].at(Some(place), message));
        }
        if whose != at {
            // The later one in the order of files is to blame.
            let ((mine, at, place), (other, whose, there)) = if at > whose {
                ((prefix, at, place), (outer, whose, there))
            } else {
                ((outer, whose, there), (prefix, at, place))
            };
            let there = drafts[whose].whereabouts(Some(there));
            let message = format!(
                "{mine} of peer \"{}\" overlaps {other} of peer \"{}\" at {there}; allowed are networks that only one peer has",
                names[at], names[whose]
            );
            return Err(drafts[at].at(Some(place), message));
        }
        around.push((prefix, at, place));
    }
    Ok(())
}
