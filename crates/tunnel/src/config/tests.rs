//! What follows from a link's configuration.

use ::link::{Protocol, cotmll, queue};

use super::*;

fn config() -> Config {
    let link = Link::parse("site.toml", "protocol = \"plain\"\nrate = \"1 Mbit/s\"").unwrap();
    Config {
        link,
        pep: pep::Config::default(),
        mtu: 1400,
        cuts_trains: true,
        carrier: CarrierLimits::udp(true, 1500),
        ways: Vec::new(),
        keep_alive: crate::session::KEEP_ALIVE,
    }
}

#[test]
fn the_queue_holds_a_round_trip_unless_told() {
    let link = |more: &str| Link::parse("link.toml", &format!("protocol = \"plain\"\n{more}")).unwrap();
    let limit = |link: Link, rate: Option<u64>, measured: Option<u64>| {
        let queue = link.queue(rate.map(Rate::from_bps), measured.map(Duration::from_millis), 1400);
        let queue::Config::DropTail(queue) = queue else { panic!("{queue:?}") };
        queue.bytes.unwrap().0
    };
    let fast = Some(80_000_000);
    assert_eq!(limit(link(""), fast, None), 6_000_000, "as for a satellite while nothing is known");
    assert_eq!(limit(link(""), fast, Some(250)), 2_500_000);
    assert_eq!(limit(link(""), fast, Some(1)), 1_000_000, "hosts may be farther away than gateways");
    assert_eq!(limit(link(""), fast, Some(60_000)), 30_000_000);
    assert_eq!(limit(link("round-trip = \"500 ms\""), fast, Some(250)), 5_000_000);
    assert_eq!(limit(link(""), Some(9_600), Some(250)), 14_000, "ten packets");
    assert_eq!(limit(link(""), None, Some(250)), 4 << 20);
    assert_eq!(limit(link("queue = { drop-tail = { bytes = \"1 kB\" } }"), fast, None), 1000);
}

#[test]
fn the_times_of_fq_codel_follow_the_round_trip_unless_told() {
    let interval = |more: &str, measured: Option<u64>| {
        let text = format!("protocol = \"plain\"\nrate = \"1 Mbit/s\"\n{more}");
        let link = Link::parse("link.toml", &text).unwrap();
        match link.queue(None, measured.map(Duration::from_millis), 1400) {
            queue::Config::FqCodel(config) => config.interval().as_millis(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        interval("queue = { fq-codel = {} }", None),
        1800,
        "as for a satellite while nothing is known"
    );
    assert_eq!(interval("queue = { fq-codel = {} }", Some(200)), 600);
    assert_eq!(
        interval("queue = { fq-codel = {} }", Some(1)),
        300,
        "hosts may be farther away than gateways"
    );
    assert_eq!(interval("queue = { fq-codel = {} }\nround-trip = \"1 s\"", Some(200)), 3000);
    assert_eq!(interval("queue = { fq-codel = { interval = \"100 ms\" } }", Some(200)), 100);
}

#[test]
fn super_segments_follow_rate_and_protection() {
    let mut site = config();
    assert_eq!(site.super_segment(site.link.rate.fixed()), None);
    site.link.clean = true;
    assert_eq!(site.super_segment(site.link.rate.fixed()), None, "at 1 Mbit/s a packet is long enough");
    site.link.rate = LinkRate::Fixed(Rate::from_bps(20_000_000));
    assert_eq!(site.super_segment(site.link.rate.fixed()), Some(10_000));
}

/// Offloads are asked for where they may come to be of use: a rate that is looked for may be high enough.
#[test]
fn offloads_are_wanted_where_super_segments_may_cross() {
    let mut site = config();
    for (rate, clean, wants) in [
        (LinkRate::Auto, false, false),
        (LinkRate::Auto, true, true),
        (LinkRate::Max, true, true),
        (LinkRate::Max, false, false),
        (LinkRate::Fixed(Rate::from_bps(1_000_000)), true, false),
        (LinkRate::Fixed(Rate::from_bps(20_000_000)), true, true),
    ] {
        (site.link.rate, site.link.clean) = (rate, clean);
        assert_eq!(site.wants_offloads(), wants, "{rate}, clean: {clean}");
    }
}

#[test]
fn what_is_around_a_datagram_counts_on_the_line() {
    let mut site = config();
    for (overhead, bytes) in [(0, 28), (18, 46), (-55, -27)] {
        site.link.overhead = Overhead::try_from(overhead).unwrap();
        assert_eq!(site.on_line(), bytes);
    }
}

#[test]
fn a_rate_that_is_said_elsewhere_is_not_missed() {
    let text = "rate = \"max\"\nqueue = { drop-tail = { time = \"1 s\" } }\nfillers = 7";
    assert!(Link::parse("link.toml", text).is_err(), "a time needs a rate");
    let link = Link::parse_without_rate("link.toml", text).unwrap();
    assert_eq!((link.rate, link.fillers), (LinkRate::Max, 7));
    let silent = "protocol = \"cotmll\"\nfillers = 0";
    assert!(Link::parse_without_rate("link.toml", silent).is_err(), "all else is looked at");
}

#[test]
fn sizes_are_taken_within_their_bounds() {
    let mtu = |text| serde_json::from_str::<Mtu<1500>>(text).map(|mtu| mtu.0).ok();
    assert_eq!(["575", "576", "65535", "65536"].map(mtu), [None, Some(576), Some(65_535), None]);
    assert_eq!(Mtu::<1400>::default().0, 1400);
    let overhead = |text| serde_json::from_str::<Overhead>(text).map(Overhead::get).ok();
    assert_eq!(["-65", "-64", "256", "257"].map(overhead), [None, Some(-64), Some(256), None]);
    let on_line = |bytes, len| Overhead::try_from(bytes).unwrap().on_line(len);
    assert_eq!((on_line(-55, 100), on_line(18, 100), on_line(-55, 20)), (45, 118, 1));
}

#[test]
fn a_super_segment_leaves_in_one_batch() {
    let mut site = config();
    (site.link.rate, site.link.clean) = (LinkRate::Max, true);
    // 44 datagrams of 1472 bytes fit an IP packet; 64 of the thesis's short ones are one send's limit.
    let wide = cotmll::wide::Config::default();
    let thesis = cotmll::Config::default();
    for (protocol, bytes) in [
        (Protocol::default(), 44 * (1439 - 4) - 8),
        (Protocol::Cotmll(wide), 44 * wide.frame_payload(&LineLimits::new(1439, None)) as u32 - 8),
        (Protocol::CotmllThesis(thesis), 64 * 487 - 8),
    ] {
        site.link.protocol = protocol;
        assert_eq!(site.super_segment(site.link.rate.fixed()), Some(bytes), "{protocol:?}");
    }
    // Of frames with 50 bytes each a batch holds two packets.
    site.link.protocol =
        Protocol::CotmllThesis(cotmll::Config { frame_payload: 50.try_into().unwrap(), ..thesis });
    assert_eq!(site.super_segment(site.link.rate.fixed()), None);
}

#[test]
fn the_age_of_datagrams_follows_queue_and_round_trip_unless_told() {
    let age = |more: &str, measured: Option<u64>| {
        let link = Link::parse("link.toml", &format!("protocol = \"coded\"\n{more}")).unwrap();
        let (rate, measured) = (Some(Rate::from_bps(8_000_000)), measured.map(Duration::from_millis));
        link.datagram_age(&link.queue(rate, measured, 1400), rate, measured).map(Duration::as_millis)
    };
    assert_eq!(age("", None), Some(2100), "as for a satellite while nothing is known");
    assert_eq!(age("", Some(20)), Some(150), "a queue holds 100 ms at least");
    assert_eq!(age("queue = { drop-tail = { time = \"3 s\" } }", Some(200)), Some(3500));
    assert_eq!(age("queue = { fq-codel = {} }", Some(200)), Some(700));
    assert_eq!(age("datagram-age = \"none\"", Some(200)), None);
    assert_eq!(age("datagram-age = \"300 ms\"", Some(200)), Some(300));
    let error = Link::parse("link.toml", "datagram-age = \"0 s\"").unwrap_err().to_string();
    assert!(error.contains("allowed are times above 0, \"auto\" or \"none\""), "{error}");
    assert!(
        Link::default().sparse_flows && !Link::parse("l.toml", "sparse-flows = false").unwrap().sparse_flows
    );
}
