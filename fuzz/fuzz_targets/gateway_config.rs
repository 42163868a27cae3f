//! Any text as a gateway configuration.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(config) = gateway::config::Config::parse("fuzz", text) {
        let _ = config.tunnel().super_segment(config.link.rate.fixed());
    }
});
