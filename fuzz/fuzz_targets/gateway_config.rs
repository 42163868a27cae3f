//! Any text as a gateway configuration, and as a file of a peer.

#![no_main]

use gateway::config::{Config, Peer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(config) = Config::parse("fuzz", text) {
        for peer in &config.peers {
            let _ = config.tunnel(peer).super_segment(peer.link.rate.fixed());
        }
    }
    let _ = base::config::parse::<Peer>("fuzz", text);
});
