//! The event log: it takes no part in a run, and what it says is what TCP, the queues and the line count themselves.

use std::path::Path;

use base::Instant;
use link::FrameKind;
use link::cotmll::SubProtocol;
use longhaul_lab::observe::events::{LinkDirection, PacketStep, What};
use longhaul_lab::run::{self, Run, Watch};
use longhaul_lab::scenario::Suite;

const DEMO: &str = include_str!("../../../scenarios/demo/download.toml");
const SATURATED: &str = include_str!("../../../scenarios/faulkner/saturated.toml");
const FTP: &str = include_str!("../../../scenarios/peng/ftp.toml");

const DIRECTIONS: [LinkDirection; 2] = [LinkDirection::Down, LinkDirection::Up];

fn run(text: &str, scheme: usize, changes: &[&str], watch: &Watch) -> Run {
    let changes: Vec<_> = changes.iter().map(|change| change.parse().unwrap()).collect();
    let suite = Suite::parse("scenario.toml", text, Path::new(""), &changes).unwrap();
    let (name, scenario) = &suite.schemes[scheme];
    run::run(name, scenario, 1, watch).unwrap()
}

fn watched() -> Watch {
    Watch { events: true, ..Watch::default() }
}

const SHORT: [&str; 1] = ["traffic.download.bulk.size=200 kB"];

/// Goal: with and without the log the same happens, over a wire, over both protocols and over a stream of bits.
#[test]
fn the_log_takes_no_part() {
    let efl = ["traffic.download.bulk.size=100 kB", "link.satellite.framing=\"efl\""];
    for (text, scheme, changes) in
        [(DEMO, 0, &SHORT[..]), (DEMO, 1, &SHORT[..]), (DEMO, 1, &efl[..]), (FTP, 0, &[][..])]
    {
        let (with, without) =
            (run(text, scheme, changes, &watched()), run(text, scheme, changes, &Watch::default()));
        assert_eq!((with.trace_hash, with.events), (without.trace_hash, without.events));
        assert!(!with.log.events().is_empty() && without.log.events().is_empty());
        assert!(with.log.events().is_sorted_by_key(|event| event.at));
        assert_eq!(with.log.unkept(), 0);
    }
}

/// Goal: frames, bits, losses and discards are those that the link counts.
#[test]
fn frames_are_those_of_the_counters() {
    for scheme in [0, 1] {
        let run = run(DEMO, scheme, &SHORT, &watched());
        for direction in DIRECTIONS {
            let counted = &run.links[&direction.of("satellite")];
            let frames = run.log.frames("satellite", direction);
            // Those of a sleep are not logged.
            assert_eq!(frames.len() as u64, counted["frames-sent"] - counted["frames-slept-through"]);
            let bits = |kind| -> u64 {
                let of_kind = frames.iter().filter(|frame| frame.kind == kind);
                of_kind.map(|frame| u64::from(frame.bits)).sum()
            };
            assert_eq!(bits(FrameKind::New), counted["bits-new"]);
            assert_eq!(bits(FrameKind::Retransmission), counted["bits-retransmission"]);
            assert_eq!(bits(FrameKind::Filler), counted["bits-filler"]);
            let discarded = frames.iter().filter(|frame| frame.discarded.is_some()).count();
            assert_eq!(discarded as u64, counted["frames-discarded"]);
            let lost = frames.iter().filter(|frame| frame.intact == Some(false)).count();
            assert!(lost > 0 && lost as u64 <= counted["frames-lost"]);
        }
    }
}

/// Goal: the frames that COTMLL takes for lost are those that it counts, and an acknowledgement that flags is of a block.
#[test]
fn flags_are_those_of_the_counters() {
    let run = run(DEMO, 1, &SHORT, &watched());
    let mut all = 0;
    for direction in DIRECTIONS {
        let mut logged = 0;
        for event in run.log.link_events("satellite", direction) {
            if let What::FramesFlagged(flagged) = &event.what {
                assert!(flagged.trailer.unwrap().ack_count > 0, "{flagged:?}");
                logged += flagged.frames.len() as u64;
            }
        }
        assert_eq!(logged, run.links[&direction.of("satellite")]["endpoint-frames-flagged"]);
        all += logged;
    }
    assert!(all > 0);
}

/// Goal: a line that is never silent is full to the end of the run, if the link sleeps by then too, and needs no timer.
#[test]
fn a_link_asleep_at_the_end_has_filled_its_line() {
    let short = ["traffic.down.rate.duration=1 s", "traffic.up.rate.duration=2 s", "duration=60 s"];
    let run = run(SATURATED, 0, &short, &Watch::default());
    for direction in DIRECTIONS {
        let counted = &run.links[&direction.of("satellite")];
        assert!(counted["frames-slept-through"] > 100_000);
        let kinds = ["new", "retransmission", "filler", "repair", "control"];
        let bits: u64 = kinds.iter().map(|kind| counted[&format!("bits-{kind}")]).sum();
        assert!((0..=3968).contains(&(bits - 60 * 262_144)), "{bits}");
        assert_eq!(counted["steps-with-timer"], 0);
        assert_eq!(counted["packets-delivered"], counted["queue-passed"]);
    }
}

/// Goal: a frame is sealed while it is on the air and arrives when it was said to, if it is intact; none that meets a
/// blockage for long is.
#[test]
fn a_frame_has_its_times_and_its_fate() {
    let run = run(DEMO, 1, &SHORT, &watched());
    let blockages = run.log.blockages("satellite", LinkDirection::Down);
    assert!(!blockages.is_empty());
    let mut delay = None;
    for frame in run.log.frames("satellite", LinkDirection::Down) {
        let Some(sealed_at) = frame.sealed_at else { continue };
        assert!(frame.on_air.start <= sealed_at && sealed_at <= frame.on_air.end);
        let travelled = frame.arrives_at - frame.on_air.end;
        assert_eq!(*delay.get_or_insert(travelled), travelled);
        let met = frame.on_air.start + travelled..frame.arrives_at;
        let inside = blockages.iter().any(|b| b.start <= met.start && met.end <= b.end);
        let clear = blockages.iter().all(|b| b.end <= met.start || met.end <= b.start);
        // The demo's channel has no errors while it is open, and half of the bits wrong while it is not.
        assert!(!inside || frame.intact == Some(false), "{frame:?}");
        assert!(!clear || frame.intact == Some(true), "{frame:?}");
        if let Some(arrived_at) = frame.arrived_at {
            assert_eq!((arrived_at, frame.intact), (frame.arrives_at, Some(true)));
        }
    }
}

/// Goal: trailers are read: new frames are numbered one after the other, a frame that is sent again has a number that
/// was sent before, and each acknowledgement is what had arrived when it was sealed.
#[test]
fn trailers_tell_the_numbers() {
    let run = run(DEMO, 1, &SHORT, &watched());
    let down = run.log.frames("satellite", LinkDirection::Down);
    let mut next = 0_u16;
    let mut again = 0;
    for frame in down.iter().filter(|frame| frame.sealed_at.is_some()) {
        let trailer = frame.trailer.unwrap();
        match frame.kind {
            FrameKind::New => {
                assert_eq!((trailer.class, trailer.tx), (SubProtocol::Reliable, next));
                next = (next + 1) % 1024;
            }
            FrameKind::Retransmission | FrameKind::Filler => {
                assert_eq!(trailer.class, SubProtocol::Reliable);
                assert!((next + 1024 - trailer.tx) % 1024 <= 512, "{trailer:?} before {next}");
                again += 1;
            }
            _ => assert_eq!((trailer.class, trailer.tx), (SubProtocol::Control, 0)),
        }
    }
    assert!(next > 0 && again > 0);
    // What the terminal had received in order by the time at which it sealed each acknowledgement.
    let arrivals: Vec<_> = down.iter().filter_map(|f| Some((f.arrived_at?, f.trailer?))).collect();
    let (mut expected, mut received, mut at) = (0_u16, [false; 1024], 0);
    let mut acknowledged = 0;
    for frame in run.log.frames("satellite", LinkDirection::Up) {
        let (Some(sealed_at), Some(trailer)) = (frame.sealed_at, frame.trailer) else { continue };
        // What arrives in the same instant may come before or after.
        let mut allowed = vec![expected];
        while at < arrivals.len() && arrivals[at].0 <= sealed_at {
            let (arrived_at, arrived) = arrivals[at];
            let ahead = (arrived.tx + 1024 - expected) % 1024;
            received[usize::from(arrived.tx)] |= arrived.class == SubProtocol::Reliable && ahead < 512;
            while core::mem::take(&mut received[usize::from(expected)]) {
                expected = (expected + 1) % 1024;
            }
            if arrived_at < sealed_at {
                allowed.clear();
            }
            allowed.push(expected);
            at += 1;
        }
        if trailer.ack_count == 0 {
            assert!(allowed.contains(&trailer.ack), "{trailer:?}, not {allowed:?}");
            acknowledged += 1;
        } else {
            assert!(received[usize::from(trailer.ack)] && !received[usize::from(expected)]);
        }
    }
    assert!(acknowledged > 100);
}

/// Goal: segments are those that TCP counts, sent and again; a receiver's duplicates carry nothing new.
#[test]
fn segments_are_those_that_tcp_counts() {
    let run = run(DEMO, 0, &SHORT, &watched());
    let sent: Vec<_> = run.log.segments("server").filter(|(_, s)| s.sent && s.len > 0).collect();
    let transfer = &run.transfers[0];
    let again = sent.iter().filter(|(_, segment)| segment.again).count() as u64;
    assert!(again > 0);
    // The counters count the FIN too, with or without data.
    assert!(transfer.segments_sent - sent.len() as u64 <= 1 + again, "{}", sent.len());
    assert!(transfer.retransmissions.abs_diff(again) <= 1, "{again}");
    assert_eq!(sent.iter().map(|(_, s)| s.seq + u64::from(s.len)).max(), Some(200_000));

    let received: Vec<_> = run.log.segments("terminal").filter(|(_, s)| !s.sent && s.len > 0).collect();
    let fresh: u64 = received.iter().filter(|(_, s)| !s.again).map(|(_, s)| u64::from(s.len)).sum();
    assert_eq!(fresh, 200_000);
    assert!(received.len() < sent.len());
    let acks = run.log.segments("server").filter(|(_, s)| !s.sent).filter_map(|(_, s)| s.ack);
    assert!(acks.max().unwrap() <= 200_001);
    assert!(run.log.segments("server").any(|(_, s)| !s.sack.is_empty()));
    assert_eq!(run.log.segments("nobody").count(), 0);
}

/// Goal: every packet that enters a queue is dropped, taken or still there, and what is delivered was taken; over a link
/// with an endpoint and over a wire.
#[test]
fn packets_are_accounted_for() {
    let small = ["link.satellite.queue.drop-tail.bytes=20 kB", "traffic.second.bulk.size=200 kB"];
    for (text, changes) in [(DEMO, &SHORT[..]), (FTP, &small[..])] {
        let run = run(text, 0, changes, &watched());
        for direction in DIRECTIONS {
            let mut steps = [0_u64; 5];
            run.log.packets("satellite", direction).for_each(|(_, mark)| steps[mark.step as usize] += 1);
            let [queued, dropped, taken, lost, delivered] = steps;
            let counted = &run.links[&direction.of("satellite")];
            let refused = counted["queue-dropped-for-bytes"] + counted["queue-dropped-for-packets"];
            assert_eq!(dropped, refused);
            assert!(taken > 0 && delivered > 0 && lost + delivered <= taken);
            if let Some(&on_the_line) = counted.get("packets-sent") {
                assert_eq!((taken, delivered), (on_the_line, counted["packets-delivered"]));
            } else {
                assert!(queued >= taken + dropped);
            }
            assert!(run.log.packets("satellite", direction).any(|(_, mark)| mark.step == PacketStep::Taken));
        }
    }
}

/// Goal: a sender's states agree with its window's trace, and its time-outs with its counters.
#[test]
fn states_are_those_of_the_sender() {
    let watch = Watch { windows: true, ..watched() };
    let run = run(DEMO, 0, &SHORT, &watch);
    let states: Vec<_> = run.log.sender_states("server").collect();
    let windows = &run.windows[0].connections()[0];
    for &(at, state) in &states {
        let mark = windows.at(at).unwrap();
        // Several changes of one instant: the trace tells the last.
        let last = states.iter().rfind(|(other, _)| *other == at).unwrap().1;
        assert!(
            last != state
                || (mark.cwnd, mark.ssthresh) == (state.cwnd, state.ssthresh)
                || at > windows.marks.last().unwrap().at
        );
    }
    let last = states.last().unwrap().1;
    assert_eq!(u64::from(last.timeouts), run.transfers[0].timeouts);
    assert!(
        last.timeouts > 0 && states.iter().any(|(_, state)| state.backoff > 0 && state.rto > state.rttvar)
    );
}

/// Goal: the blockages are the channel's own, up to the run's end.
#[test]
fn blockages_are_those_of_the_timeline() {
    let run = run(DEMO, 1, &SHORT, &watched());
    let suite = Suite::parse("scenario.toml", DEMO, Path::new(""), &[]).unwrap();
    let channel = &suite.scenario.link["satellite"].channel;
    let line = channel.build(1, "satellite").down;
    let expected: Vec<_> = line.timeline().blocked_in(Instant::ZERO..run.log.ended_at()).collect();
    assert!(expected.len() > 2);
    assert_eq!(run.log.blockages("satellite", LinkDirection::Down), expected);
}

/// Goal: a file holds every event that memory does, a line each, as JSON objects with their time and place.
#[test]
fn a_file_holds_the_same_events() {
    let file = std::env::temp_dir().join(format!("longhaul-events-{}.jsonl", std::process::id()));
    let watch = Watch { log: Some(file.clone()), ..watched() };
    let run = run(DEMO, 1, &SHORT, &watch);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(text.lines().count(), run.log.events().len());
    for (line, event) in text.lines().zip(run.log.events()) {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["at"], event.at.as_nanos());
        assert_eq!(value["place"], run.log.place_name(event.place));
        assert!(value["event"].is_string());
    }
    let unwritable = Watch { log: Some(Path::new("/dev/null/events").to_owned()), ..Watch::default() };
    let suite = Suite::parse("scenario.toml", DEMO, Path::new(""), &[]).unwrap();
    assert!(run::run("TCP", &suite.scenario, 1, &unwritable).is_err());
}
