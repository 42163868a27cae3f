//! Whether a link can have the path that its channel describes.

use channel::duplex;

use super::{Nonsense, nonsense};
use crate::scenario::{Framing, Link};

/// Paths need frames or packets, and those that change their order a protocol that does not mind.
pub(super) fn check(name: &str, link: &Link, channel: &duplex::Config) -> Result<(), Nonsense> {
    if let Err(complaint) = channel.check_path() {
        return nonsense(complaint.key, format!("link \"{name}\" {}", complaint.message));
    }
    let Some(key) = channel.path_key_besides(&[]) else { return Ok(()) };
    if link.framing != Framing::Ideal {
        let message = format!("link \"{name}\" has {key} and a framing; allowed is framing = \"ideal\"");
        return nonsense(key, message);
    }
    if link.dama.is_some() {
        let message = format!("link \"{name}\" has both dama and {key}; allowed is only one of them");
        return nonsense(key, message);
    }
    if let Some(key) = channel.overtaking_key()
        && let Some(protocol) = link.protocol.filter(|protocol| protocol.capabilities().needs_order)
    {
        let message = format!(
            "link \"{name}\" lets frames overtake by {key}, but \"{}\" infers losses from their order; allowed are \
             paths that keep order, no protocol, or one such as \"plain\"",
            protocol.name()
        );
        return nonsense(key, message);
    }
    if let Some(key) = channel.saying_key() {
        let what = match (&link.protocol, &link.pep) {
            (Some(_), _) => "a protocol, whose frames have no source to tell",
            (None, Some(pep)) if pep.enabled => "a proxy, which stands between it and the source",
            _ => return Ok(()),
        };
        let message =
            format!("link \"{name}\" has {key} with says = true and {what}; allowed is says = false");
        return nonsense(key, message);
    }
    Ok(())
}
