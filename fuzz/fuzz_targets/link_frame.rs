//! Random frames into an endpoint of each protocol that is itself sending, over several lines where it knows them.

#![no_main]

use base::{Duration, Instant, Packet};
use libfuzzer_sys::fuzz_target;
use link::{LineId, LineLimits, Protocol, Treatment};

fuzz_target!(|bytes: &[u8]| {
    let mut now = Instant::ZERO;
    let Some((&choice, mut rest)) = bytes.split_first() else { return };
    let text = match choice % 14 {
        0 => "p = \"plain\"",
        1 => "p = \"cotmll-thesis\"",
        2 => "p = { cotmll-thesis = { window = 64, ordered = false } }",
        3 => "p = \"cotmll\"",
        4 => "p = { cotmll = { window = 64, ordered = false } }",
        5 => "p = \"harq\"",
        6 => "p = { harq = { fragments = 4, data = 3, combine = true, ordered = false, window = 64 } }",
        7 => "p = { harq = { fragments = 3, data = 2, transmissions = 1 } }",
        8 => "p = { cotmll-thesis = { persistence = \"2 s\", attempts = 5 } }",
        9 | 12 => "p = \"coded\"",
        13 => "p = \"cotmll\"",
        10 => "p = { coded = { window = 64, ordered = true } }",
        _ => "p = { cotmll-thesis = { window = 9, ordered = false, persistence = \"100 ms\" } }",
    };
    #[derive(serde::Deserialize)]
    struct Settings {
        p: Protocol,
    }
    let settings: Settings = base::config::parse("fuzz", text).expect("a known protocol");
    let mut endpoint = settings.p.build(&LineLimits::new(1500, None));
    let mut frame = Vec::new();
    while let Some((&len, tail)) = rest.split_first() {
        let (head, tail) = tail.split_at(usize::from(len).min(tail.len()));
        rest = tail;
        if endpoint.has_room(Treatment::Reliable) {
            endpoint.offer(now, Packet::from_slice(&[0x45; 600]), Treatment::Reliable).expect("it has room");
        }
        // A second at most from frame to frame, so that packets are overdue now and then.
        now += Duration::from_millis(u64::from(len) * 4);
        frame.clear();
        if choice % 14 >= 12
            && let Some(lines) = endpoint.lines()
        {
            let line = LineId::new(len % 4).expect("there are eight");
            let _ = lines.poll_frame_over(now, line, &mut frame);
            let _ = lines.handle_frame_over(now, line, head);
            let _ = endpoint.demand_over(now, line);
            while endpoint.poll_packet().is_some() {}
            if endpoint.poll_timeout().is_some_and(|due| due <= now) {
                endpoint.handle_timeout(now);
            }
            continue;
        }
        if let Some(info) = endpoint.poll_frame(now, &mut frame)
            && info.late_len > 0
        {
            endpoint.seal_frame(now, &mut frame);
        }
        let _ = endpoint.handle_frame(now, head);
        while endpoint.poll_packet().is_some() {}
        let _ = endpoint.demand(now);
    }
});
