//! Any text as a recording of outages.

#![no_main]

use channel::timeline::Trace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(trace) = Trace::parse(text) else { return };
    let mut before = None;
    for blocked in trace.take(1000) {
        assert!(blocked.start < blocked.end && before.is_none_or(|end| end <= blocked.start));
        before = Some(blocked.end);
    }
});
