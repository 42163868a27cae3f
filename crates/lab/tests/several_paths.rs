//! Links with several paths: downloads have what all carry together, pages what the nearest does, and nothing is lost when one goes dark.

use std::collections::BTreeMap;
use std::path::Path;

use longhaul_lab::run::{self, Run, Watch};
use longhaul_lab::scenario::Suite;

const PAIR: &str = include_str!("../../../scenarios/paths/pair.toml");

fn run(changes: &[&str], seed: u64) -> Run {
    let changes: Vec<_> = changes.iter().map(|change| change.parse().unwrap()).collect();
    let suite = Suite::parse("pair.toml", PAIR, Path::new(""), &changes).unwrap();
    let run = run::run(
        "",
        &suite.schemes[0].1,
        seed,
        &Watch { latencies: true, progress: true, ..Watch::default() },
    )
    .unwrap();
    assert!(run.intact, "{run:?}");
    run
}

/// Whether the scenario is refused, with these words.
fn refused(changes: &[&str]) -> String {
    let changes: Vec<_> = changes.iter().map(|change| change.parse().unwrap()).collect();
    Suite::parse("pair.toml", PAIR, Path::new(""), &changes).unwrap_err().to_string()
}

fn channel(rate: &str, delay: &str, errors: &str) -> String {
    format!("{{ rate = \"{rate}\", delay = \"{delay}\", errors = {errors} }}")
}

const CLEAR: &str = "\"none\"";
const LOSSY: &str = "{ erasure = { probability = 0.02 } }";
const BLOCKED: &str = "{ gilbert-elliott = { f = 0.3, d = \"1 s\" } }";

fn bits(run: &Run, path: &str) -> u64 {
    run.links["sky/down"][&format!("path-{path}-bits")]
}

/// Goal: .93 of what each alone brings together, whatever the two are; and never less than the better one.
#[test]
fn a_download_has_what_all_paths_bring_together() {
    for (seed, one, two) in [
        (1, channel("20 Mbit/s", "25 ms", CLEAR), channel("50 Mbit/s", "300 ms", CLEAR)),
        (2, channel("20 Mbit/s", "25 ms", LOSSY), channel("3 Mbit/s", "300 ms", LOSSY)),
        (3, channel("10 Mbit/s", "100 ms", BLOCKED), channel("1 Mbit/s", "150 ms", CLEAR)),
        (4, channel("4 Mbit/s", "25 ms", LOSSY), channel("8 Mbit/s", "250 ms", BLOCKED)),
    ] {
        for protocol in ["coded", "cotmll"] {
            let protocol = format!("link.sky.protocol=\"{protocol}\"");
            let first = format!("link.sky.channel={one}");
            let alone =
                |channel: &str| run(&[&protocol, &format!("link.sky.channel={channel}")], seed).goodput_bps;
            let alone = [alone(&one), alone(&two)];
            let both = run(&[&protocol, &first, &format!("link.sky.path.two.channel={two}")], seed);
            let share = both.goodput_bps / alone.iter().sum::<f64>();
            assert!(share > 0.93, "{protocol}, {one}, {two}: {share}");
            assert!(both.goodput_bps > alone[0].max(alone[1]), "{protocol}, {one}, {two}");
            let bound = both.bound_bps;
            assert!(both.goodput_bps <= bound, "{} of {bound}", both.goodput_bps);
        }
    }
}

/// What a request and its reply take with both paths is what they take over the nearer one alone, which the other one is told by.
#[test]
fn a_request_takes_the_nearer_path() {
    let exchange = "traffic.main={ transactions = { from = \"server\", to = \"client\", request = \"200 B\", reply = \"10 kB\", count = 20 } }";
    let near = format!("link.sky.channel={}", channel("5 Mbit/s", "20 ms", CLEAR));
    let far = format!("link.sky.path.far.channel={}", channel("80 Mbit/s", "250 ms", CLEAR));
    let text = PAIR.replace("[traffic.main.bulk]", "[traffic.other.bulk]\nstart = \"29 s\"");
    let median = |changes: &[&str]| {
        let changes: Vec<_> = changes.iter().map(|change| change.parse().unwrap()).collect();
        let suite = Suite::parse("pair.toml", &text, Path::new(""), &changes).unwrap();
        let run = run::run("", &suite.schemes[0].1, 1, &Watch::default()).unwrap();
        run.transactions[0].times.as_ref().map(|times| times.p50).unwrap()
    };
    let alone = median(&[exchange, &near]);
    let both = median(&[exchange, &near, &far]);
    assert!(both <= 1.1 * alone, "{both} s instead of {alone} s");
}

/// A backup carries nothing while the other is there, and all of it when that is dark; of a metered path hardly anything is used for what
/// fits the other.
#[test]
fn paths_are_used_as_they_may_be() {
    let stream = "traffic.main={ rate = { from = \"server\", to = \"client\", rate = \"2 Mbit/s\", record = \"1000 B\", duration = \"28 s\" } }";
    let text = PAIR.replace("[traffic.main.bulk]", "[traffic.other.bulk]\nstart = \"29 s\"\nsize = \"1 kB\"");
    let go = |changes: &[&str]| {
        let changes: Vec<_> = [stream].iter().chain(changes).map(|change| change.parse().unwrap()).collect();
        let suite = Suite::parse("pair.toml", &text, Path::new(""), &changes).unwrap();
        run::run("", &suite.schemes[0].1, 1, &Watch { latencies: true, ..Watch::default() }).unwrap()
    };
    let path = |how: &str| {
        format!("link.sky.path.two={{ {how} = true, channel = {} }}", channel("10 Mbit/s", "10 ms", CLEAR))
    };
    // The channel is dark from the tenth second to the twentieth.
    let dark = "link.sky.channel.rate-changes=[{ at = \"10 s\", rate = \"0 bit/s\" }, { at = \"20 s\", rate = \"10 Mbit/s\" }]";
    let used = |run: &Run| bits(run, "two") as f64 / bits(run, "channel") as f64;
    for how in ["metered", "backup"] {
        let lit = go(&[&path(how)]);
        assert!(used(&lit) < if how == "backup" { 1e-9 } else { 0.01 }, "{how}: {}", used(&lit));
        let gone = go(&[&path(how), dark]);
        let source = &gone.sources[0];
        assert!(source.undelivered < 40 && source.duplicates == 0, "{how}: {source:?}");
        assert!((0.4..0.7).contains(&used(&gone)), "{how}: {}", used(&gone));
        let longest = gone.latencies["main"].iter().map(|sample| sample.latency).max().unwrap();
        // The last reports come a round trip after the last frames; silence is noticed two and a little later, and then what was lost goes again.
        assert!(longest.as_secs_f64() < 1.2, "{how}: {longest}");
    }
}

/// Every class of packets learns of a dark path what any does: a call goes on over the other although it is a download that misses reports.
#[test]
fn a_call_goes_on_when_its_path_goes_dark() {
    let changes = [
        "link.sky.once-dscp=[46]",
        "link.sky.channel={ rate = \"10 Mbit/s\", delay = \"20 ms\", rate-changes = [{ at = \"10 s\", rate = \"0 bit/s\" }] }",
        "link.sky.path.far.channel={ rate = \"10 Mbit/s\", delay = \"250 ms\" }",
        "traffic.call={ rate = { from = \"server\", to = \"client\", rate = \"64 kbit/s\", record = \"160 B\", transport = \"udp\", dscp = 46 } }",
    ];
    let run = run(&changes, 1);
    let call = run.sources.iter().find(|source| source.name == "call").unwrap();
    assert!(call.undelivered * 100 < call.generated * 5, "{call:?}");
    let longest = run.latencies["call"].iter().map(|sample| sample.latency).max().unwrap();
    assert!(longest.as_secs_f64() < 1.0, "{longest}");
}

#[test]
fn each_path_is_counted_by_its_name_and_the_bound_is_their_sum() {
    let two = format!("link.sky.path.two.channel={}", channel("5 Mbit/s", "50 ms", CLEAR));
    let both = run(&[&two], 1);
    let names: BTreeMap<_, _> =
        both.links["sky/down"].iter().filter(|(name, _)| name.starts_with("path-")).collect();
    assert_eq!(names.len(), 6, "{names:?}");
    let sum: u64 = ["channel", "two"].map(|path| bits(&both, path)).iter().sum();
    let all: u64 =
        both.links["sky/down"].iter().filter(|(name, _)| name.starts_with("bits-")).map(|it| it.1).sum();
    assert_eq!(sum, all);
    let alone = run(&[], 1);
    // Half as much more, and half of the delay at the start.
    let ratio = both.bound_bps / alone.bound_bps;
    assert!((1.5..1.503).contains(&ratio), "{ratio}");
}

/// What hides the first vehicle of a group hides the next some time later: never both at the same time, where obstacles are shorter than that.
#[test]
fn a_group_passes_the_same_obstacles_one_after_the_other() {
    let periodic = "{ periodic = { open = \"8 s\", blocked = \"2 s\", first = \"5 s\" } }";
    let own = format!("link.sky.channel={}", channel("2 Mbit/s", "20 ms", periodic));
    let group = |after: &str| {
        let channel = channel("2 Mbit/s", "20 ms", periodic);
        let next = format!("link.sky.path.next={{ obstacles-after = \"{after}\", channel = {channel} }}");
        run(&[&own, &next], 1)
    };
    let [together, apart] = ["0 s", "4 s"].map(group);
    // Of thirty seconds six are blocked either way: what differs is when nothing comes at all.
    assert!(
        (apart.bound_bps / together.bound_bps - 1.0).abs() < 0.05,
        "{} {}",
        apart.bound_bps,
        together.bound_bps
    );
    let pauses = |run: &Run| {
        let points = &run.progress[0].points;
        points.windows(2).filter(|pair| (pair[1].0 - pair[0].0).as_secs_f64() > 1.0).count()
    };
    assert_eq!((pauses(&together), pauses(&apart)), (3, 0));
}

#[test]
fn what_no_link_can_have_is_refused() {
    let two = format!("link.sky.path.two.channel={}", channel("5 Mbit/s", "50 ms", CLEAR));
    for (changes, want) in [
        (
            vec!["link.sky.protocol=\"slacp\""],
            "has a path \"two\" beside its channel and slacp, which knows but one line",
        ),
        (
            vec!["link.sky.protocol=\"plain\""],
            "allowed are the protocols \"coded\" and \"cotmll\", or no path",
        ),
        (vec!["link.sky.path.two.classes=[]"], "allowed are some of once, interactive, reliable"),
        (
            vec!["link.sky.path.channel.channel={ rate = \"1 Mbit/s\", delay = \"1 ms\" }"],
            "but not \"channel\"",
        ),
        (vec!["link.sky.dama={ rbdc = \"1 Mbit/s\" }"], "beside its channel and dama"),
        (
            vec![
                "link.sky.path.two.obstacles-after=\"4 s\"",
                "link.sky.channel.errors={ erasure = { probability = 0.1 } }",
            ],
            "with obstacles-after and other errors than the channel's; allowed are the same",
        ),
        (vec!["link.sky.path.two.channel.delay=\"2 h\""], "allowed are delays up to 1 h"),
    ] {
        let all: Vec<&str> = core::iter::once(two.as_str()).chain(changes).collect();
        let said = refused(&all);
        assert!(said.contains(want), "{said}");
    }
    let many: Vec<String> = (0..8)
        .map(|number| format!("link.sky.path.p{number}.channel={}", channel("1 Mbit/s", "10 ms", CLEAR)))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(refused(&many).contains("has 8 paths beside its channel; allowed are 7"));
}
