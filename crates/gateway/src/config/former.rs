//! Configurations of earlier versions: what to write instead.

use base::config::ConfigError;
use serde::Deserialize;
use tunnel::config::Place;

/// Keys that earlier versions had, where they are.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Former {
    session: Option<Place>,
    carrier: Carrier,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Carrier {
    udp: Udp,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Udp {
    peer: Option<toml::Spanned<toml::Value>>,
    pin_peer: Option<Place>,
}

/// Refuses the configuration of an earlier version, in one sentence that says what to do now. What is wrong otherwise is left to
/// others.
///
/// # Errors
/// That sentence.
pub(super) fn check(file: &str, text: &str) -> Result<(), ConfigError> {
    let Ok(Former { session, carrier: Carrier { udp } }) = base::config::parse(file, text) else {
        return Ok(());
    };
    let endpoint =
        udp.peer.as_ref().map_or_else(String::new, |peer| format!("endpoint = {}", peer.get_ref()));
    let (span, message) = if let Some(session) = session {
        let also = if endpoint.is_empty() { String::new() } else { format!(" and {endpoint}") };
        let message = format!(
            "[session] is gone: gateways have identities now; run `longhaul keygen --out identity.key` at each end, put \
             private-key-file = \"identity.key\" under [identity], and under [[peer]] public-key = \"…\", as \
             `longhaul pubkey identity.key` prints it at the other end{also}"
        );
        (session.span(), message)
    } else if let Some(peer) = udp.peer {
        (peer.span(), format!("`peer` has moved; write {endpoint} under [[peer]] instead"))
    } else if let Some(pin_peer) = udp.pin_peer {
        (pin_peer.span(), "`pin-peer` has moved; write pin-endpoint under [[peer]] instead".to_owned())
    } else {
        return Ok(());
    };
    Err(ConfigError::at(file, text, span, message))
}
