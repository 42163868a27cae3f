//! What a peer may tell of a path: control datagrams of any kind, content and time. Nothing panics, what waits is bounded, deadlines pass, and
//! the rate stays one that can be sent at.

#![no_main]

use base::{Duration, Instant, Rate};
use libfuzzer_sys::fuzz_target;
use tunnel::control::Kind;
use tunnel::survey::rate::Aim;
use tunnel::survey::Survey;

/// Answers that may be due at once: one to each datagram, and what the survey asks by itself.
const MOST_AT_ONCE: usize = 64;
const AIMS: [Aim; 3] = [Aim::Find, Aim::Known(Rate::from_bps(10_000_000)), Aim::Unlimited];

fn drain(survey: &mut Survey, now: Instant) {
    let mut said = 0;
    while let Some((_, body)) = survey.poll_control(now) {
        said += 1;
        assert!(said <= MOST_AT_ONCE && body.len() <= 65_535);
    }
    while survey.poll_finding().is_some() {}
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, mut rest)) = bytes.split_first() else { return };
    let sizes = if first & 8 == 0 { (Some(1200), 9000) } else { (None, 1500) };
    let mut survey = Survey::new(AIMS[usize::from(first) % AIMS.len()], 28, sizes, 60);
    let mut now = Instant::ZERO;
    survey.on_established(now, false, true);
    while let Some((&[kind, wait, len], after)) = rest.split_first_chunk() {
        now += Duration::from_millis(u64::from(wait) * u64::from(wait));
        let (body, after) = after.split_at(usize::from(len).min(after.len()));
        rest = after;
        match kind {
            250.. => survey.on_established(now, kind & 1 == 0, kind & 2 == 0),
            240.. => {
                if survey.poll_train(now, 1400, u64::from(len) * 1000).is_some() {
                    survey.end_train(now);
                }
            }
            kind => drop(survey.handle_control(now, Kind::ALL[usize::from(kind) % Kind::ALL.len()], body)),
        }
        drain(&mut survey, now);
        // A deadline that is over would be one for ever.
        for _ in 0..MOST_AT_ONCE {
            let Some(due) = survey.poll_timeout(now).filter(|due| *due <= now) else { break };
            now = now.max(due) + Duration::from_nanos(1);
            drain(&mut survey, now);
        }
        if let Some(rate) = survey.rate_controller.rate(now) {
            assert!(rate.as_bps() > 0);
        }
    }
});
