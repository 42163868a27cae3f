//! Lines that are granted, lines whose rate changes, and media with more than two ends.

mod things;

use std::path::Path;
use std::sync::{Arc, Mutex};

use base::{Duration, Instant, Packet, Rate};
use channel::{Access, Grant, Line};
use lab::engine::Engine;
use lab::node::{FrameCost, Link, LinkEnd, Medium, Wire, WireEnd};
use lab::run::{self, Watch};
use lab::scenario::Suite;
use link::queue::{self, Site};
use link::{ByDscp, Entry, LineLimits, Protocol};
use longhaul_lab as lab;
use things::{Heard, Thing, packet};

const RATE: Rate = Rate::from_bps(1_000_000);
const DELAY: Duration = Duration::from_millis(20);
/// Bytes that take 10 ms at that rate.
const LEN: usize = 1250;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn line() -> Line {
    Line::error_free(RATE, DELAY)
}

fn plain(line: Line) -> LinkEnd {
    let protocol = Protocol::default();
    let site = Site { rate: Some(RATE), seed: 1, name: "l" };
    let entry = Entry::new(&queue::Config::default(), &site, ByDscp::default(), protocol.capabilities());
    LinkEnd::new(entry, protocol.build(&LineLimits::new(1500, Some(RATE))), line, FrameCost::Framing(0))
}

fn wire_end(line: Line) -> WireEnd {
    let site = Site { rate: Some(RATE), seed: 1, name: "l" };
    WireEnd::new(queue::Config::default().build(&site, "queue"), None, line)
}

/// Attaches a host to each end, with its packets, and runs: what each heard, in ms.
fn run_with(thing: Thing, packets: Vec<Vec<(Instant, Packet)>>) -> Vec<Vec<(u64, u8)>> {
    let mut engine = Engine::new();
    let middle = engine.add(thing);
    let mut all: Vec<Heard> = Vec::new();
    for packets in packets {
        let (host, heard) = Thing::host(packets);
        let host = engine.add(host);
        engine.connect(middle, host);
        all.push(heard);
    }
    engine.run(at(60_000), 0);
    let millis = |heard: Heard| {
        let heard = heard.take();
        heard.into_iter().map(|(at, number)| (at.as_nanos() / 1_000_000, number)).collect()
    };
    all.into_iter().map(millis).collect()
}

/// A slot of one frame every 50 ms.
#[derive(Debug)]
struct Slots {
    next: Instant,
}

impl Access for Slots {
    fn grant(&mut self, now: Instant, backlog: u64) -> Grant {
        assert!(backlog > 0, "asked for nothing");
        let every = Duration::from_millis(50);
        while self.next < now {
            self.next += every;
        }
        if self.next > now {
            return Grant::Later(self.next);
        }
        self.next += every;
        Grant::Now
    }
}

fn slots() -> Slots {
    Slots { next: at(50) }
}

/// Goal: over a link and over a wire, packets leave in the slots that their sender is granted and in no others.
#[test]
fn packets_leave_in_their_slots() {
    // The first three find the line free, the last comes in a slot that nobody asked for.
    let packets = || [(0, 0), (0, 1), (60, 2), (250, 3)].map(|(ms, n)| (at(ms), packet(n, 0, LEN))).to_vec();
    let link = Link::point_to_point([plain(line().with_access(slots())), plain(line())]);
    let wire = Wire::new([wire_end(line().with_access(slots())), wire_end(line())]);
    for thing in [Thing::Link(Box::new(link)), Thing::Wire(Box::new(wire))] {
        let heard = run_with(thing, vec![packets(), Vec::new()]);
        assert_eq!(heard[1], [(80, 0), (130, 1), (180, 2), (280, 3)]);
    }
}

/// Grants nothing until three packets wait, and then all of them.
#[derive(Debug)]
struct Patient {
    granted: u32,
}

impl Access for Patient {
    fn grant(&mut self, _now: Instant, backlog: u64) -> Grant {
        if self.granted == 0 && backlog < 3 * LEN as u64 {
            return Grant::Later(Instant::MAX);
        }
        self.granted = self.granted.checked_sub(1).unwrap_or(2);
        Grant::Now
    }
}

/// Goal: the one who grants is asked again when the backlog grows, and only then.
#[test]
fn a_growing_backlog_is_told() {
    let packets = [0, 100, 200, 300].map(|ms| (at(ms), packet((ms / 100) as u8, 0, LEN))).to_vec();
    let wire = Wire::new([wire_end(line().with_access(Patient { granted: 0 })), wire_end(line())]);
    let heard = run_with(Thing::Wire(Box::new(wire)), vec![packets, Vec::new()]);
    assert_eq!(heard[1], [(230, 0), (240, 1), (250, 2)]);
}

/// One channel that several ends share: whoever asks first has it for a frame of 10 ms.
#[derive(Debug, Clone)]
struct Shared(Arc<Mutex<Instant>>);

impl Access for Shared {
    fn grant(&mut self, now: Instant, _backlog: u64) -> Grant {
        let mut free_at = self.0.lock().unwrap();
        if *free_at > now {
            return Grant::Later(*free_at);
        }
        *free_at = now + RATE.time_for(LEN as u64 * 8);
        Grant::Now
    }
}

/// Goal: on a broadcast medium every other end hears a packet; on a star the hub's reach all, theirs the hub alone.
#[test]
fn who_hears_whom_is_the_mediums() {
    let hosts = || (0..3).map(|n| vec![(at(100 * u64::from(n)), packet(n, 0, LEN))]).collect::<Vec<_>>();
    let heard = |medium: Medium| {
        let ends = (0..3).map(|_| plain(line())).collect();
        run_with(Thing::Link(Box::new(Link::new(ends, medium))), hosts())
    };
    let [zero, one, two] = [(30, 0), (130, 1), (230, 2)];
    assert_eq!(heard(Medium::broadcast(3)), [[one, two], [zero, two], [zero, one]]);
    assert_eq!(heard(Medium::star(3)), [vec![one, two], vec![zero], vec![zero]]);
}

/// Goal: ends that share an access never transmit at the same time, and each gets its turn.
#[test]
fn ends_that_share_a_medium_take_turns() {
    let shared = Shared(Arc::new(Mutex::new(Instant::ZERO)));
    let ends = (0..3).map(|_| plain(line().with_access(shared.clone()))).collect();
    let hosts = (0..3).map(|n| vec![(at(0), packet(n, 0, LEN)), (at(0), packet(n + 10, 0, LEN))]).collect();
    let heard = run_with(Thing::Link(Box::new(Link::new(ends, Medium::broadcast(3)))), hosts);
    let mut all: Vec<_> = heard.concat();
    all.sort_unstable();
    all.dedup();
    // Six packets, one every 10 ms, where three lines would carry three at once.
    assert_eq!(all.iter().map(|(ms, _)| *ms).collect::<Vec<_>>(), [30, 40, 50, 60, 70, 80]);
    let numbers: std::collections::BTreeSet<_> = all.iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers.into_iter().collect::<Vec<_>>(), [0, 1, 2, 10, 11, 12]);
}

/// A file over a link that slows down after 10 s.
const SLOWING: &str = "name = \"slowing\"\nduration = \"200 s\"\n\
    [link.satellite]\nends = [\"hub\", \"terminal\"]\n\
    [link.satellite.channel]\nrate = \"1 Mbit/s\"\ndelay = \"50 ms\"\n\
    rate-changes = [{ at = \"10 s\", rate = \"250 kbit/s\" }]\n\
    [traffic.download.bulk]\nfrom = \"hub\"\nto = \"terminal\"\nsize = \"2 MB\"\n";

fn parse(changes: &[&str]) -> Result<Suite, String> {
    let changes: Vec<_> = changes.iter().map(|change| change.parse().unwrap()).collect();
    Suite::parse("s.toml", SLOWING, Path::new(""), &changes).map_err(|error| error.to_string())
}

/// Goal: 2 MB leave at the first rate for 10 s and the rest at the second, within 10 % of the bound, over a wire and a link.
#[test]
fn a_scenarios_rates_change_and_its_bound_follows() {
    for changes in [&[][..], &["link.satellite.protocol=\"cotmll-thesis\""]] {
        let suite = parse(changes).unwrap();
        let run = run::run("slowing", &suite.scenario, 1, &Watch::default()).unwrap();
        assert!(run.complete && run.intact);
        // With headers 2.06 MB: 1.25 MB of that in the first 10 s, and the rest in 26 s.
        assert!((35.0..42.0).contains(&run.seconds), "{} s", run.seconds);
        assert!(
            (0.9..=1.0).contains(&(run.goodput_bps / run.bound_bps)),
            "{} of {}",
            run.goodput_bps,
            run.bound_bps
        );
        assert_eq!(run.normalised_throughput, None);
    }
}

/// Goal: what a rate that changes cannot be combined with is refused, with what is allowed.
#[test]
fn changes_that_make_no_sense_are_refused() {
    for (change, complaint) in [
        (
            "rate-changes=[{at=\"0 s\",rate=\"1 bit/s\"}]",
            "changes its rate at 0 s; allowed are times after 0 s",
        ),
        (
            "rate-changes=[{at=\"2 s\",rate=\"1 bit/s\"},{at=\"2 s\",rate=\"2 bit/s\"}]",
            "changes its rate at 2 s; allowed are times after 0 s, in increasing order",
        ),
        ("errors.bit-errors.ber=1e-6", "has rate-changes and bit errors; allowed are erasure, and blockages"),
        ("rate-changes=[{rate=\"1 bit/s\"}]", "missing key `at`"),
        (
            "errors.erasure={probability=0.1,changes=[{at=\"3 s\",probability=0.2},{at=\"2 s\",probability=0}]}",
            "changes its erasures at 2 s; allowed are times in increasing order",
        ),
    ] {
        let error = parse(&[&format!("link.satellite.channel.{change}")]).unwrap_err();
        assert!(error.contains(complaint), "{error}");
    }
    let framing =
        parse(&["link.satellite.protocol=\"cotmll-thesis\"", "link.satellite.framing=\"efl\""]).unwrap_err();
    assert!(framing.contains("has rate-changes and a framing; allowed is framing = \"ideal\""), "{framing}");
    assert!(parse(&["link.satellite.channel.errors.erasure.probability=0.01"]).is_ok());
}
