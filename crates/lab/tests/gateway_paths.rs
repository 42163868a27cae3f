//! Gateways with several paths between them in virtual time: everything that a daemon does with them but the sockets.

use std::path::Path;

use crate::gateways::{at, received, run_with};
use lab::run::Run;
use lab::scenario::Suite;
use longhaul_lab as lab;

const BASE: &str = include_str!("../../../scenarios/paths/gateways.toml");

/// A call of 50 packets a second from the vehicle, which fits the nearer path.
const CALL: &str = "[traffic.call.rate]\nfrom = \"laptop\"\nto = \"server\"\nrate = \"64 kbit/s\"\nrecord = \"160 B\"\ntransport = \"udp\"\nstart = \"3 s\"\n";
/// Leaves nothing beside what is added.
const NO_DOWNLOAD: &str = "traffic.download.bulk.size=\"1 kB\"";

/// Bytes that a gateway has sent over each path: as they are numbered, the mobile network is the first.
fn sent(run: &Run, gateway: &str) -> [u64; 2] {
    [0, 1].map(|path| run.nodes[gateway][&format!("tunnel-path-{path}-bytes-sent")])
}

/// The call's packets that came and left, the longest time between two that came, and when the last one did.
fn call(run: &Run) -> (u64, u64, f64) {
    let call = run.sources.iter().find(|source| source.name == "call").unwrap();
    assert_eq!(call.duplicates, 0);
    let progress = run.progress.iter().find(|received| received.name == "call").unwrap();
    let times: Vec<_> = progress.points.iter().map(|(then, _)| *then).filter(|then| *then > at(5)).collect();
    let gap =
        times.windows(2).map(|pair| pair[1].saturating_since(pair[0]).as_secs_f64()).fold(0.0, f64::max);
    (call.delivered, call.generated, gap)
}

fn refused(more: &str, changes: &[&str]) -> String {
    let changes: Vec<_> = changes.iter().map(|change| change.parse().unwrap()).collect();
    Suite::parse("gateways.toml", &format!("{BASE}\n{more}"), Path::new(""), &changes)
        .unwrap_err()
        .to_string()
}

/// Goal: what both carry together, found out, whichever protocol; and the hub, which was told of no path, sends over both.
#[test]
fn a_download_has_what_both_paths_carry() {
    for protocol in ["coded", "cotmll"] {
        let run = run_with(BASE, "", &[&format!("tunnel.trunk.link.protocol=\"{protocol}\"")]);
        let goodput = received(&run, "download", 10, 30);
        // Of 1500 bytes 61 are headers of gateways, and a hundredth or a thousandth of all is lost.
        let most = (50.0 * 0.99 + 20.0 * 0.999) * 1439.0 / 1500.0;
        assert!((0.93 * most..most).contains(&goodput), "{protocol}: {goodput} of {most}");
        assert!(run.goodput_bps <= run.bound_bps, "{} of {}", run.goodput_bps, run.bound_bps);
        let [mobile, sky] = sent(&run, "hub");
        assert!(mobile > 30_000_000 && sky > 100_000_000, "{mobile} and {sky} bytes");
        // Each goes over its own link, both ways.
        for (link, bytes) in [("mobile", mobile), ("sky", sky)] {
            let carried = run.links[&format!("{link}/down")]["bytes-sent"];
            assert!(carried.abs_diff(bytes) < bytes / 50, "{link}: {carried} of {bytes} bytes");
            assert!(run.links[&format!("{link}/up")]["bytes-sent"] > 100_000, "reports go over {link} too");
        }
    }
}

/// Goal: the nearer path is gone for ten seconds without a word, and not a packet of a call is missing; when it is back it is used.
#[test]
fn a_call_outlives_its_path() {
    let dark = "link.mobile.channel.rate-changes=[{ at = \"10 s\", rate = \"0 bit/s\" }, { at = \"20 s\", rate = \"20 Mbit/s\" }]";
    let run = run_with(BASE, CALL, &[dark, NO_DOWNLOAD]);
    let (came, left, gap) = call(&run);
    // What is under way at the end does not count.
    assert!(left - came < 5, "{came} of {left}");
    // Four round trips of the satellite and 200 ms.
    assert!(gap < 2.6, "{gap} s");
    let before = run_with(BASE, CALL, &[dark, NO_DOWNLOAD, "duration=20 s"]);
    let (then, late) = (sent(&before, "vehicle")[0], sent(&run, "vehicle")[0]);
    // Ten seconds of 50 packets of more than 200 bytes.
    assert!(late - then > 7 * 50 * 200, "{} bytes after it came back", late - then);
}

/// Goal: what costs something carries a hundredth at most while the other suffices; a backup carries nothing but what asks whether it lives.
#[test]
fn a_metered_path_and_a_backup_are_spared() {
    // A film, which is a tenth of what the satellite carries.
    let film = "[traffic.film.rate]\nfrom = \"server\"\nto = \"laptop\"\nrate = \"5 Mbit/s\"\nrecord = \"1000 B\"\ntransport = \"udp\"\nstart = \"4 s\"\n";
    let run = run_with(BASE, film, &["tunnel.trunk.path.mobile.metered=true", NO_DOWNLOAD]);
    let film = run.sources.iter().find(|source| source.name == "film").unwrap();
    assert!(film.delivered * 100 > film.generated * 97, "{} of {}", film.delivered, film.generated);
    let [mobile, sky] = sent(&run, "hub");
    assert!(mobile * 100 < sky, "{mobile} bytes beside {sky}");
    let run = run_with(BASE, "", &["tunnel.trunk.path.mobile.backup=true"]);
    let [mobile, sky] = sent(&run, "hub");
    assert!(mobile * 1000 < sky, "{mobile} bytes beside {sky}");
}

/// Goal: what one path alone may carry goes on when that one is open again, however well another is heard meanwhile that may not carry it.
#[test]
fn what_one_path_alone_carries_waits_for_it() {
    let blocked =
        "link.sky.channel.errors={ periodic = { open = \"2 s\", blocked = \"1500 ms\", first = \"5 s\" } }";
    for (classes, size) in [("\"once\", \"interactive\"", "5 MB"), ("\"reliable\"", "9 kB")] {
        for protocol in ["coded", "cotmll"] {
            let run = run_with(
                BASE,
                CALL,
                &[
                    blocked,
                    &format!("tunnel.trunk.link.protocol=\"{protocol}\""),
                    &format!("tunnel.trunk.path.mobile.classes=[{classes}]"),
                    &format!("traffic.download.bulk.size=\"{size}\""),
                    "duration=60 s",
                ],
            );
            assert!(run.transfers[0].seconds.is_some(), "{protocol}, {classes}: {:?}", run.transfers[0]);
            let (came, left, gap) = call(&run);
            assert!(came * 10 > left * 9 && gap < 6.0, "{protocol}, {classes}: {came} of {left}, {gap} s");
        }
    }
}

/// Goal: routers on the way lead each path's datagrams to its gateway over its own link, in both directions.
#[test]
fn paths_lead_over_routers() {
    let mut text = BASE.replace(
        "[link.mobile]\nends = [\"hub\", \"vehicle\"]",
        "[link.mobile]\nends = [\"tower\", \"vehicle\"]",
    );
    text.push_str("\n[link.fibre]\nends = [\"hub\", \"tower\"]\nchannel = { rate = \"100 Mbit/s\", delay = \"2 ms\" }\n");
    let run = run_with(&text, "", &["duration=15 s"]);
    let [mobile, sky] = sent(&run, "hub");
    let carried = run.links["fibre/down"]["bytes-sent"];
    assert!(carried.abs_diff(mobile) < mobile / 50 && sky > mobile, "{carried} of {mobile} bytes");
    let goodput = received(&run, "download", 10, 15);
    assert!(goodput > 55.0, "{goodput} Mbit/s");
    assert!(run.goodput_bps <= run.bound_bps, "{} of {}", run.goodput_bps, run.bound_bps);
}

/// Goal: whichever gateway forgets everything, both paths are used again.
#[test]
fn paths_outlive_a_restart() {
    for gateway in ["vehicle", "hub"] {
        let later = "[traffic.later.bulk]\nfrom = \"server\"\nto = \"laptop\"\nstart = \"16 s\"\n";
        let restarts = format!("{CALL}{later}[gateway.{gateway}]\nrestarts = [\"12 s\"]\n");
        let run = run_with(BASE, &restarts, &[]);
        let (_, _, gap) = call(&run);
        assert!(gap < 4.0, "{gateway}: {gap} s");
        let goodput = received(&run, "later", 22, 30);
        assert!(goodput > 60.0, "{gateway}: {goodput} Mbit/s");
    }
}

/// Goal: a run over paths is a function of its scenario and seed.
#[test]
fn a_run_over_paths_is_repeatable() {
    let hash = |seed: &str| run_with(BASE, CALL, &["duration=8 s", seed]).trace_hash;
    assert_eq!(hash("seed=1"), hash("seed=1"));
    assert_ne!(hash("seed=1"), hash("seed=2"));
}

#[test]
fn what_cannot_be_is_refused() {
    for (more, changes, want) in [
        (
            "[tunnel.trunk.path.lan]",
            &[][..],
            "no such link leads from \"vehicle\" to \"hub\"; allowed are mobile, sky",
        ),
        ("[tunnel.trunk.path.cable]", &[], "path \"cable\", but no such link"),
        ("", &["tunnel.trunk.link.protocol=\"slacp\""], "2 paths, but slacp goes over one"),
        ("", &["tunnel.trunk.link.rate=\"9 Mbit/s\""], "a rate for 2 paths"),
        (
            "",
            &["tunnel.trunk.path.mobile.backup=true", "tunnel.trunk.path.sky.backup=true"],
            "have no path but a backup",
        ),
        ("", &["tunnel.trunk.path.mobile.classes=[]"], "or no classes"),
        (
            "[link.far]\nends = [\"hub\", \"isle\"]\nchannel = { rate = \"9 Mbit/s\", delay = \"5 ms\" }\n\
             [tunnel.other]\nends = [\"vehicle\", \"isle\"]\n",
            &[],
            "calls over the paths of tunnel \"trunk\" and over others",
        ),
    ] {
        let told = refused(more, changes);
        assert!(told.contains(want), "{told}");
    }
}
